// Package control differentiates If, Scan and Loop.
//
// A graph inside a node is differentiated as a model of its own: what it reads from around it are inputs
// like any others, with gradients. The node that results recomputes the graph and runs it backwards.
//
// If gives an If on the same condition, with the gradient of one branch in each; a value that only the
// other branch reads gets zeros.
//
// Scan and Loop give a Scan, or a Loop, over the iterations in reverse (back-propagation through time,
// Werbos 1990). Forward, the node gets further outputs: the states at the beginning of each iteration
// that the gradient of the body reads, and of a Loop the number of the iteration, whose count is the
// trip count, whatever decided it. Backward, an iteration recomputes the body from them, hands the
// gradients of the states on to the iteration before, and adds to those of captured values.
//
// Memory is that of these states, trip count times their size; what the body computes in between is not
// kept, at the price of one more forward pass. The number of nodes does not depend on the trip count. A
// Loop whose trip count is known runs backwards as a Scan; otherwise as a Loop, which may have no
// iteration. The product of the Hessian with a vector then takes time that grows with the square of the
// trip count.
package control

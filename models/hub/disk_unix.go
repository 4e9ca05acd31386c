//go:build unix

package hub

import "syscall"

// diskFull are the errors of a disk that takes no more.
var diskFull = []error{syscall.ENOSPC, syscall.EDQUOT}

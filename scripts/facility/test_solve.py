"""HiGHS against all plans of a small problem, costed by the definition."""

import itertools

import numpy as np
import pytest

pytest.importorskip("highspy")
import solve


def cost(problem, is_open, served_by, d):
    """The mean cost of a plan under demands, [scenario, customer], facility by facility."""
    total = 0.0
    for demand in d:
        for i, c in enumerate(problem["Open"]):
            served = [j for j, at in enumerate(served_by) if at == i]
            load = sum(demand[j] for j in served)
            total += c * is_open[i] + problem["Outsource"][i] * max(0, load - problem["Capacity"][i] * is_open[i])
            total += sum(demand[j] * problem["Ship"][j * len(is_open) + i] for j in served)
    return total / len(d)


def test_solve():
    rng = np.random.default_rng(3)
    for _ in range(3):
        problem = {
            "Open": list(rng.uniform(20, 60, 3)),
            "Capacity": list(rng.uniform(20, 60, 3)),
            "Outsource": list(rng.uniform(1, 3, 3)),
            "Ship": list(rng.uniform(0, 2, 12)),
            "Demand": list(rng.uniform(5, 40, 4)),
            "Spread": 1,
        }
        d = solve.demands(problem, 5, 1)
        costs = [cost(problem, y, x, d) for y in itertools.product([0, 1], repeat=3) for x in itertools.product(range(3), repeat=4)]
        plan, found, bound = solve.solve(problem, d, 60, threads=1)
        assert abs(found - min(costs)) < 1e-4 * min(costs) and abs(bound - found) < 1e-3 * found
        is_open = [int(i in plan["open"]) for i in range(3)]
        assert abs(cost(problem, is_open, plan["facility_of_customer"], d) - found) < 1e-4 * found

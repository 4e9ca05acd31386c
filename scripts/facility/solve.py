"""Solve facility location by HiGHS on the average of a few demands, as `papers facility` compares it.

    go run ./cmd/papers facility --out F --chains 1 --steps 1    # writes the problems F/facility-*.json
    .venv/bin/python scripts/facility/solve.py F/facility-15x30-*.json --scenarios 8,1024 --time-limit 60 --out plans.json
    go run ./cmd/papers facility --size 15x30 plans.json

The program of a sample average over N demands: y open, x assignment, s outsourced demand of each scenario.

    min  c·y + Σ_ij c_ij·mean(d_j)·x_ij + Σ_ik g_i·s_ik / N
    s.t. Σ_i x_ij = 1,  Σ_j d_jk·x_ij <= K_i·y_i + s_ik,  s >= 0,  x, y binary
"""

import argparse
import json
import pathlib
import time

import highspy
import numpy as np


def demands(problem, scenarios, seed):
    """Demands by the problem's law, [scenario, customer]."""
    mean = np.array(problem["Demand"])
    noise = np.random.default_rng(seed).uniform(-1, 1, (scenarios, len(mean)))
    return mean * (1 + problem["Spread"] * noise)


def solve(problem, d, limit, threads=0):
    """Returns the plan, its cost under d and the bound on all plans, or None where HiGHS finds no plan in time."""
    facilities, customers, scenarios = len(problem["Open"]), len(problem["Demand"]), len(d)
    ship = np.array(problem["Ship"]).reshape(customers, facilities)
    assign = ship * d.mean(0)[:, None]  # [customer, facility]
    outsource = np.array(problem["Outsource"])
    first = facilities + customers * facilities  # of s, [scenario, facility]
    lp = highspy.HighsLp()
    lp.num_col_ = first + scenarios * facilities
    lp.num_row_ = customers + scenarios * facilities
    lp.col_cost_ = np.concatenate([problem["Open"], assign.ravel(), np.tile(outsource / scenarios, scenarios)])
    lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.concatenate([np.ones(first), np.full(scenarios * facilities, highspy.kHighsInf)])
    lp.row_lower_ = np.concatenate([np.ones(customers), np.full(scenarios * facilities, -highspy.kHighsInf)])
    lp.row_upper_ = np.concatenate([np.ones(customers), np.zeros(scenarios * facilities)])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * first + [highspy.HighsVarType.kContinuous] * (scenarios * facilities)
    x = facilities + np.arange(customers * facilities).reshape(customers, facilities)
    index, value, start = [x.ravel()], [np.ones(x.size)], [np.arange(customers) * facilities]
    row = np.empty((facilities, customers + 2))  # Σ_j d_j·x_ij - K_i·y_i - s_ik
    columns = np.empty((facilities, customers + 2), dtype=np.int64)
    columns[:, :customers], columns[:, customers] = x.T, np.arange(facilities)
    row[:, customers], row[:, customers + 1] = -np.array(problem["Capacity"]), -1
    for k in range(scenarios):
        row[:, :customers] = d[k]
        columns[:, customers + 1] = first + k * facilities + np.arange(facilities)
        start.append(x.size + (k * facilities + np.arange(facilities)) * (customers + 2))
        index.append(columns.ravel().copy())
        value.append(row.ravel().copy())
    a = lp.a_matrix_
    a.format_ = highspy.MatrixFormat.kRowwise
    a.index_, a.value_ = np.concatenate(index).astype(np.int32), np.concatenate(value)
    a.start_ = np.concatenate([*start, [len(a.index_)]]).astype(np.int32)
    h = highspy.Highs()
    h.silent()
    h.setOptionValue("time_limit", float(limit))
    h.setOptionValue("threads", threads)
    h.passModel(lp)
    h.run()
    info = h.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    solution = np.array(h.getSolution().col_value)
    plan = {
        "open": [int(i) for i in np.flatnonzero(solution[:facilities] > 0.5)],
        "facility_of_customer": [int(i) for i in solution[facilities:first].reshape(customers, facilities).argmax(1)],
    }
    return plan, info.objective_function_value, info.mip_dual_bound


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("problems", nargs="+", type=pathlib.Path)
    p.add_argument("--scenarios", default="8,1024", help="numbers of demands in the average")
    p.add_argument("--time-limit", type=float, default=3600, help="seconds for a problem")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--out", type=pathlib.Path, required=True)
    o = p.parse_args()
    plans = []
    for path in o.problems:
        problem = json.loads(path.read_text())
        for scenarios in map(int, o.scenarios.split(",")):
            begun = time.perf_counter()
            found = solve(problem, demands(problem, scenarios, o.seed), o.time_limit)
            seconds = round(time.perf_counter() - begun, 1)
            if found is None:
                print(f"{path.stem}: no plan for {scenarios} demands in {seconds} s")
                continue
            plan, cost, bound = found
            print(f"{path.stem}: {scenarios} demands, cost {cost:.0f}, bound {bound:.0f}, {seconds} s", flush=True)
            plans.append({"problem": path.stem, "method": f"highs-{scenarios}", "seconds": seconds, **plan})
    o.out.write_text(json.dumps(plans))


if __name__ == "__main__":
    main()

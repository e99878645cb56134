"""Claims of papers, compared with measurements of runs.

Each experiment is a folder papers/PAPER/EXPERIMENT with a scenario.toml and a claims.toml:

    title = "Two hops"

    [[figure]]                       # a plot of waterfill.papers.figures.PLOTS, its arguments
    name = "figure-7"                # figure-7.png and figure-7.svg
    plot = "rates"
    args = { average_s = 1.0 }

    [[claim]]
    id = "rise-red-blue"
    source = "§VII.A.1"
    statement = "Red→Blue rises to 90 % of its share in less than 1 s"
    measure = "rise_time"            # a measure of waterfill.papers.measures, its arguments
    args = { flow = "red-blue", at_s = 0.0, target_bps = 559.8e6 }
    in_force = { t_s = "maxnet.t" }  # arguments that the run's law has, or products of its gains
    unit = "s"
    relation = "<"                   # measured =, < or > the paper's value; default =
    paper_value = 1.0
    of = "other run"                 # paper_value is then a factor of the measure on that run
    tolerance = "5 %"                # of the paper's value, or a number in `unit`; default 0
    expect = "reproduced"            # the recorded verdict; any other needs `why` too
    sentence = "§VII.A.1 rise"       # claims of a paper that share it count once by sentence
    beyond = "our own instance"      # in place of `sentence`: why the paper does not say this
    insensitive = "a bound"          # why no wrong law of the study claim-mutants changes it

An experiment of several runs names them, and its figures and claims say which they use:

    [grid]                           # one run per combination, named by its values: "xcp 64"
    protocol = ["xcp", "ixcp"]
    "flow.long.count" = [4, 64]      # "a, b" = […] gives both keys the same value

    [[run]]                          # a single run
    name = "small buffer"
    scenario = "other.toml"          # default scenario.toml
    on = "fluid"                     # default sim
    set = ["link.l.buffer=100 packets"]
    short = false                    # the short version leaves it out

    [short]                          # what `make test` runs: these overrides, these grid points
    set = ["duration=10 s"]
    grid = { "flow.long.count" = [4] }

    seeds = 3                        # for random scenarios: run with 3 seeds and take means;
                                     # short versions always have one seed

    [[claim]]
    run = "xcp 64"                   # for measures of one run
    short_args = { stop_s = 10.0 }   # arguments that the short version replaces
    short = false                    # the short version does not check this claim
    over_seeds = { runs = 15, least = 0.8, most = 1.1 }  # recorded range of single runs

The verdict is *reproduced* if the relation holds within the tolerance, and *differs* if it does
not. It is *cannot be checked* if the paper gives no value, the run has no sample, or single runs
fall on both sides of the tolerance (see `verdict`). `expect` does not affect the verdict:
`reproduce` fails if the two are not the same.

Reading order: `schema` (the file's keys), `loading` (reads and checks it), `experiment` (its
scenarios), `verdict` (measures and judges), `sentences` (counts the papers' own statements), `text`
(a judged claim for people).
"""

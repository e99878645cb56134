"""What papers say, held against what a run measures.

Each experiment is a folder papers/PAPER/EXPERIMENT with a scenario.toml and a claims.toml:

    title = "Two hops"

    [[figure]]                       # waterfill.papers.figures.PLOTS, with its arguments
    name = "figure-7"                # figure-7.png and figure-7.svg
    plot = "rates"
    args = { average_s = 1.0 }

    [[claim]]
    id = "rise-red-blue"
    source = "§VII.A.1"
    statement = "Red→Blue rises to 90 % of its share in less than 1 s"
    measure = "rise_time"            # a measure of waterfill.papers.measures, its arguments
    args = { flow = "red-blue", at_s = 0.0, target_bps = 559.8e6 }
    unit = "s"
    relation = "<"                   # measured =, < or > the paper's value; = by default
    paper_value = 1.0
    tolerance = "5 %"                # of the paper's value, or a number in `unit`; 0 by default
    expect = "reproduced"            # the verdict of the last look; else `why` is needed too

An experiment of several runs names them, and its figures and claims say which they mean:

    [grid]                           # a run for each combination, named by its values: "xcp 64"
    protocol = ["xcp", "ixcp"]
    "flow.long.count" = [4, 64]      # "a, b" = […] gives both keys the same value

    [[run]]                          # and single ones
    name = "small buffer"
    scenario = "other.toml"          # scenario.toml by default
    set = ["link.l.buffer=100 packets"]

    [short]                          # what `make test` runs: these overrides, these grid points
    set = ["duration=10 s"]
    grid = { "flow.long.count" = [4] }

    seeds = 3                        # a random scenario: runs with so many seeds, and means
                                     # over them; short versions have one run all the same

    [[claim]]
    run = "xcp 64"                   # for measures of one run; others take all, or compute
    short_args = { stop_s = 10.0 }   # where the short version needs other arguments
    short = false                    # where a short version says nothing
    over_seeds = { runs = 15, least = 0.8, most = 1.1 }  # single runs: see `chance`

The verdict is *reproduced* when the relation holds within the tolerance, *differs* when it does
not, *cannot be checked* when the paper gives no value, the run no sample, or chance decides on
which side of the tolerance a single run like the paper's lies (`chance`).
`expect` never enters into it: a verdict that is not the one expected makes `reproduce`
fail, in either direction.

Reading order: `chance`, `schema` (the file's keys), `verdict`, `experiment`, `loading`, `text`.
"""

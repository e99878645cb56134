#!/usr/bin/env bash
# Runs a measurement of speed: tools/bench.sh CASE BASE [OPTION …]. Run by 'make bench', which has set up .venv.
#
#   ""             the packet engine's cases against a calibration loop and the history; fails if 10 % slower; 3 minutes
#   NAME           one case of bench/measure.py; with a BASE (HEAD~1) in pairs with that commit's engine; 5 minutes
#   peers          ns-3, ns-2 and htsim next to the engine, on equal work; 10 minutes
#   growth         cost and memory against flows (10 to 1,000,000) and links (1 to 10,000); 5 minutes
#   large K …      CPU time and memory of fat-trees (K = 8, 16 and 32) from rule to page, and of long lists of flows
#   roofline       the floor of a packet's cost: a loop that touches the same memory and computes nothing
#   linux          the testbed's delay line; as root, on an idle host
set -euo pipefail
cd "$(dirname "$0")/.."
case=$1 base=$2
shift 2

case $case in
  peers) exec .venv/bin/python bench/peers/table.py "$@" ;;
  large*) read -ra sizes <<<"${case#large}" && exec .venv/bin/python bench/large.py "${sizes[@]}" ;;
  growth | roofline) exec cargo run --release --locked --quiet --package waterfill-bench --example "$case" ;;
  linux) exec .venv/bin/python -m validation linux-delay-line -o out/linux-delay-line ;;
esac
read -ra cases <<<"$case"
if [ -n "$base" ]; then exec .venv/bin/python bench/compare.py "$base" "${cases[@]}"; fi
exec .venv/bin/python bench/measure.py "${cases[@]}"

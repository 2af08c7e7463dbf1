# shellcheck shell=sh disable=SC2154 # the script sets them
# For scripts that run redlock-bench in turns and compare medians. Sourced; they have set:
#
#   here, bench        the folder of the scripts, the path of redlock-bench
#   nodes, duration    of each run, the latter in seconds
#   fields             names of the fields of a result that are compared, as flatten.awk prints them

script=$(basename "$0")
if [ ! -x "$bench" ]; then
    echo "$script: there is no $bench: build it first, or name it as the argument" >&2
    exit 2
fi

results=$(mktemp)
trap 'rm -f "$results"' EXIT
trap 'exit 130' INT TERM

# record KIND IN_FLIGHT OPTION...: runs the benchmark once, and appends "KIND IN_FLIGHT VALUE..." to
# $results, for median.awk. Ends the script if there were errors.
record() {
    row="$1 $2"
    shift 2
    values=$("$bench" --spawn "$nodes" --duration "$duration" --json "$@" |
        awk -f "$here/flatten.awk" |
        awk -v fields="$fields" '
            { value[$1] = $2 }
            END {
                count = split(fields, name, " ")
                for (i = 1; i <= count && value["errors"] == "0"; i++) print value[name[i]]
            }')
    if [ -z "$values" ]; then
        echo "$script: a run failed" >&2
        exit 1
    fi
    # shellcheck disable=SC2086 # one line
    echo "$row" $values >>"$results"
}

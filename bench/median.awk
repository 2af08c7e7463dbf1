# Reads rows "KIND IN_FLIGHT VALUE...", one for each run (turns.sh).
{
    count = ++runs[$1, $2]
    for (i = 3; i <= NF; i++) rows[$1, $2, count, i - 2] = $i + 0
}

# middle KIND IN_FLIGHT INDEX: the median of a value over the runs
function middle(kind, many, index_of,    count, sorted, i, j, value) {
    count = runs[kind, many]
    for (i = 1; i <= count; i++) {
        value = rows[kind, many, i, index_of]
        for (j = i; j > 1 && sorted[j - 1] > value; j--) sorted[j] = sorted[j - 1]
        sorted[j] = value
    }
    return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
}

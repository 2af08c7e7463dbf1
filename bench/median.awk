# For scripts whose runs are in the arrays `runs` (their number, by kind and number in flight) and
# `rows` (their columns, by kind, number in flight, run and column).

# middle KIND MANY COLUMN: the median of a column over the runs
function middle(kind, many, column,    count, sorted, i, j, value) {
    count = runs[kind, many]
    for (i = 1; i <= count; i++) {
        value = rows[kind, many, i, column]
        for (j = i; j > 1 && sorted[j - 1] > value; j--) sorted[j] = sorted[j - 1]
        sorted[j] = value
    }
    return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
}

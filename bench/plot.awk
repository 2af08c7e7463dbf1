# Draws an SVG from lines "SERIES X Y [LEAST MOST]": one curve for each series, in the order of
# their first lines, and a bar from LEAST to MOST at each point. The curves also differ by their
# dashes.
# Variables: title, x_title, y_title; x_log, y_log (1: logarithmic; otherwise the axis begins at 0);
# x_marks: marks of the x axis in place of the data's, as "X=TEXT X=TEXT".

function min(a, b) { return a < b ? a : b }
function max(a, b) { return a > b ? a : b }
function text(x, y, anchor, size, words, more) {
    printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\"%s>%s</text>\n", x, y,
        anchor, size, more, words
}
function line(x1, y1, x2, y2, color) {
    printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2,
        color
}
function scaled(value, is_log) { return is_log ? log(value) : value }
function at_x(value) {
    return left + (right - left) * (scaled(value, x_log) - x_low) / (x_high - x_low)
}
function at_y(value) {
    return bottom - (bottom - top) * (scaled(value, y_log) - y_low) / (y_high - y_low)
}
# Formats a number for people: 12000 as 12,000.
function in_words(number,    digits, words) {
    if (number < 100 && sprintf("%.0f", number) != number) return sprintf("%.3g", number)
    for (digits = sprintf("%.0f", number); length(digits) > 3;
         digits = substr(digits, 1, length(digits) - 3))
        words = "," substr(digits, length(digits) - 2) words
    return digits words
}
# Returns the distance of marks: 1, 2 or 5 times a power of 10, for about 5 marks on the axis.
function step_of(span,    power) {
    for (power = 1; power * 10 <= span / 5; power *= 10) {}
    for (; power > span / 5; power /= 10) {}
    if (span / power <= 5) return power
    return span / power <= 10 ? 2 * power : span / power <= 25 ? 5 * power : 10 * power
}

$3 ~ /^-?[0-9.]/ && (!x_log || $2 > 0) && (!y_log || $3 > 0) {
    if (!($1 in count)) order[++curves] = $1
    i = ++count[$1]
    x[$1, i] = $2
    y[$1, i] = $3
    x_least = n++ ? min(x_least, $2) : $2
    x_most = max(x_most, $2)
    low[$1, i] = NF >= 5 && (!y_log || $4 > 0) ? $4 : $3
    high[$1, i] = NF >= 5 ? $5 : $3
    y_least = n > 1 ? min(y_least, low[$1, i]) : low[$1, i]
    y_most = max(y_most, high[$1, i])
    xs[$2]
}

# Finds the marks of the y axis, and the length of the longest mark's text.
function mark_y_axis(    mark, step) {
    if (y_log) {
        for (mark = y_least; mark <= y_most * 1.001; mark *= 10) y_marks[++y_mark_count] = mark
    } else {
        step = step_of(y_most)
        for (mark = 0; mark <= y_most; mark += step) y_marks[++y_mark_count] = mark
    }
    for (mark = 1; mark <= y_mark_count; mark++)
        y_mark_length = max(y_mark_length, length(in_words(y_marks[mark])))
}

function draw_y_axis(    i) {
    for (i = 1; i <= y_mark_count; i++) {
        line(left, at_y(y_marks[i]), right, at_y(y_marks[i]), "#ddd")
        text(left - 6, at_y(y_marks[i]) + 4, "end", 12, in_words(y_marks[i]), "")
    }
}

function draw_x_axis(    i, marks, total, part) {
    if (x_marks != "") {
        total = split(x_marks, marks, " ")
        for (i = 1; i <= total; i++) {
            split(marks[i], part, "=")
            text(at_x(part[1]), bottom + 18, "middle", 12, part[2], "")
        }
        return
    }
    for (i in xs) text(at_x(i), bottom + 18, "middle", 12, in_words(i), "")
}

# Draws the spread at a point, with a stroke at each end.
function draw_bar(x, y1, y2, color) {
    if (y1 == y2) return
    line(x, y1, x, y2, color)
    line(x - 4, y1, x + 4, y1, color)
    line(x - 4, y2, x + 4, y2, color)
}

function draw_curve(number,    name, i, points, color, style) {
    name = order[number]
    color = colors[(number - 1) % 6 + 1]
    style = sprintf("fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\"", color,
        dashes[(number - 1) % 6 + 1])
    for (i = 1; i <= count[name]; i++) {
        points = points sprintf("%.1f,%.1f ", at_x(x[name, i]), at_y(y[name, i]))
        draw_bar(at_x(x[name, i]), at_y(low[name, i]), at_y(high[name, i]), color)
    }
    printf "<polyline points=\"%s\" %s/>\n", points, style
    for (i = 1; i <= count[name]; i++)
        printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", at_x(x[name, i]),
            at_y(y[name, i]), color
    printf "<path d=\"M%d %d h36\" %s/>\n", right + 14, top + 20 * number - 4, style
    gsub(/_/, " ", name)
    text(right + 56, top + 20 * number, "start", 13, name, "")
}

END {
    width = 760; height = 400; right = 560; top = 44; bottom = 340
    # The palette of Okabe and Ito: colour-blind people can tell its colours apart.
    split("#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #000000", colors, " ")
    split("none 8,4 2,3 10,3,2,3 12,6 4,2", dashes, " ")
    if (y_log) {
        for (i = 1; i > y_least; i /= 10) {}
        for (; i * 10 <= y_least; i *= 10) {}
        y_least = i
        for (; i < y_most; i *= 10) {}
        y_most = max(i, 10 * y_least)
    } else {
        y_least = 0
        y_most = y_most > 0 ? y_most : 1
    }
    mark_y_axis()
    left = 40 + 8 * y_mark_length # room for the axis' title beside its marks
    x_low = scaled(x_least, x_log); x_high = scaled(x_most, x_log)
    if (x_high == x_low) x_high = x_low + 1
    y_low = scaled(y_least, y_log); y_high = scaled(y_most, y_log)

    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" ", width, height
    print "font-family=\"sans-serif\">"
    printf "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height
    text((left + right) / 2, 24, "middle", 16, title, "")
    text((left + right) / 2, bottom + 44, "middle", 13, x_title, "")
    text(0, 0, "middle", 13, y_title, sprintf(" transform=\"translate(18 %d) rotate(-90)\"",
        (top + bottom) / 2))
    draw_y_axis()
    draw_x_axis()
    line(left, bottom, right, bottom, "black")
    line(left, top, left, bottom, "black")
    for (i = 1; i <= curves; i++) draw_curve(i)
    print "</svg>"
}

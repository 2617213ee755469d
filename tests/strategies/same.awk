# Two files of --json lines that tell the same training: awk -v relative=R -v points=P -v least=L -f same.awk A B
# Losses may differ by a relative error (of LEAST where they are smaller: differences of means), accuracies by so many
# points of a hundred; counts are the same to the digit, times are left out.
# value(NUMBER, NAME) for each pair of a line; text values count as they stand
function pairs(line, into, order,    n, key) {
    n = 0
    while (match(line, /"[a-z_0-9]+": *[^,}]+/)) {
        key = substr(line, RSTART + 1, RLENGTH - 1)
        line = substr(line, RSTART + RLENGTH)
        order[++n] = substr(key, 1, index(key, "\"") - 1)
        sub(/^[^:]*: */, "", key)
        into[order[n]] = key
    }
    return n
}
function size(x) { return x < 0 ? -x : x }
function differ(what) { print FILENAME " line " FNR ": " what; wrong++ }
FNR == NR { kept[FNR] = $0; lines = FNR; next }
{
    second = FNR
    delete a; delete b; delete names; delete others
    n = pairs(kept[FNR], a, names)
    if (pairs($0, b, others) != n || n == 0)
        differ("other fields: " kept[FNR] " | " $0)
    for (i = 1; i <= n; i++) {
        key = names[i]; x = a[key]; y = b[key]
        if (key ~ /^(seconds|samples_per_second)$/) continue
        if (y == "") differ(key " is missing")
        else if (key ~ /accuracy|right/) { if (size(x - y) * 100 > points + 1e-5) differ(key " " x " | " y) }
        else if (key ~ /loss|mse|mae|stood|perplexity|divergence|deviation|nearness/) {
            scale = size(x) < least ? least : size(x)
            if (size(x - y) > worst * scale) { worst = size(x - y) / scale; at = key }
            if (x y ~ /n/ || size(x - y) > relative * scale) differ(key " " x " | " y) # nan, null, inf
        } else if (x != y) differ(key " " x " | " y)
    }
}
END {
    if (lines == 0 || second != lines) { print lines + 0 " lines, then " second + 0; wrong++ }
    printf "%.1e is the largest error%s\n", worst, at == "" ? "" : ", of " at
    exit wrong > 0
}

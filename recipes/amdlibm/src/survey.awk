# Merge the results of several surveys. Print each function of the first file with its largest error in
# all files, and with the first failure. Ignore illegal instructions in files after the first: the
# processor may lack instructions of a level that is not its own.
function size(error) {
    return error == "inf" ? 1e300 : error + 0
}
FNR == 1 {
    file++
}
file > 1 && $5 ~ /Illegal instruction/ {
    next
}
!($1 in functions) {
    order[++count] = $1
    functions[$1] = $2 FS $3
    errors[$1] = $4
}
size($4) > size(errors[$1]) {
    errors[$1] = $4
}
$5 != "" && wrong[$1] == "" {
    level = FILENAME
    gsub(/level-|\.tsv/, "", level)
    wrong[$1] = $5 (level == "native" ? "" : ", as on " level)
}
END {
    for (i = 1; i <= count; i++)
        print order[i] FS functions[order[i]] FS errors[order[i]] FS wrong[order[i]]
}

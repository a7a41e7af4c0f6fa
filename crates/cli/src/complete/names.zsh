# Names of regions and codelets, else options and files.
_cere() {
    local -a names
    names=("${(@f)$(${(Q)words[1]} complete words -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    names=(${names:#})
    if (( $#names )); then
        compadd -V names -- $names
    else
        _cere_options "$@"
    fi
}

if [ "$funcstack[1]" = "_cere" ]; then
    _cere "$@"
else
    compdef _cere cere
fi

# Names of regions and codelets, else options and files.
_cere_with_names() {
    mapfile -t COMPREPLY < <("$1" complete bash "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    if [ ${#COMPREPLY[@]} -eq 0 ]; then
        _cere "$@"
    fi
}
complete -F _cere_with_names -o nosort -o bashdefault -o default cere

# Names of regions and codelets.
function __cere_names
    set -l begun (commandline -ct | string trim --left --chars "'\"" | string replace --all '\\' '')
    set -l words (commandline -opc)
    $words[1] complete words -- $words "$begun" 2>/dev/null
end
complete -c cere -k -a '(__cere_names)'

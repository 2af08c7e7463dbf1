# Completion of `redlock` for bash.

_redlock() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} i
    local command=${COMP_WORDS[1]} common='-n --json --max-ttl --node-timeout'

    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W \
            'run dev doctor inspect watch list nodes --help --version' -- "$word")
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [ "$command" = run ] && [ "${COMP_WORDS[i]}" = -- ]; then
            # Behind "--" stands another command, with completions of its own.
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif [ "$i" -eq $((COMP_CWORD - 1)) ]; then
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            fi
            return
        fi
    done
    case $before in
    --on-lost)
        mapfile -t COMPREPLY < <(compgen -W 'term kill warn' -- "$word")
        return
        ;;
    -n | -E | --ttl | --wait | --min-hold | --permits | --grace | --owner | --key | --max-ttl | \
        --node-timeout | --prefix | --interval)
        return
        ;;
    esac
    case $command in
    run)
        common="$common --ttl --wait --no-wait --min-hold --fence --shared --writer --permits \
            --grace --on-lost --watch-key -E --owner --key --"
        ;;
    dev) common='--json' ;;
    doctor) common="$common --prefix" ;;
    watch) common="$common --interval" ;;
    nodes) common="$common --yes new" ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$common" -- "$word")
}

complete -F _redlock redlock

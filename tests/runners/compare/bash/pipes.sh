#!/usr/bin/env bash
yes | head -n 2
echo "${PIPESTATUS[@]}"
printf '%s\n' c a b | sort | tac | paste -sd,
diff <(echo a) <(echo b)
seq 100000 | awk '{ s += $1 } END { print s }'
jq -c '.a[1]' <<<'{"a": [1, {"b": 2}]}'
echo 'scale=5; 2/3' | bc

# Test: the programs that are installed run, and their manual pages and completions are there.
#
# programs.sh PREFIX   under `bash -euo pipefail`
bin=$1/bin
share=$1/share
for program in musterd musterctl musterrun; do "$bin/$program" --version; done
ls "$share"/man/man{8/musterd.8,1/musterctl.1,1/musterrun.1} \
  "$share"/bash-completion/completions/muster{ctl,run} "$share"/zsh/site-functions/_muster{ctl,run}
ranks=$("$bin/musterrun" -n 3 --tee 1 printenv RANK | sort | tr '\n' ' ')
[[ $ranks == '[default0]: 0 [default1]: 1 [default2]: 2 ' ]]

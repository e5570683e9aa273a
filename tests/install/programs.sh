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

# HTTP, where it was built: what musterd loads shows its entry alone, and Boost is nowhere else.
library=$(find "$1" -name 'libmuster-http.so.0')
if [[ -z $library ]]; then
  echo "muster-http was not built: there is no Boost, or no OpenSSL"
  exit 0
fi
[[ $(nm -D --defined-only "$library" | cut -d ' ' -f 3) == muster_http_table ]]
names=$(readelf -d "$library")
grep -q 'SONAME.*\[libmuster-http\.so\.0\]' <<< "$names"
names=$(nm -C "$bin/musterd" "${library%-http.so.0}.a" 2> /dev/null || true)
if grep -m 1 'boost::' <<< "$names"; then exit 1; fi
"$bin/musterctl" keygen --http somebody | grep '^muster-http-'
coproc "$bin/musterd" --listen 127.0.0.1:0 --http 127.0.0.1:0 --log-level silent
pid=$COPROC_PID
read -r <&"${COPROC[0]}"
read -r line <&"${COPROC[0]}"
address=${line#musterd serves HTTP at http://}
exec 3<> "/dev/tcp/${address%:*}/$(tr -d / <<< "${address##*:}")"
printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3
grep -q '^ok$' <&3
kill "$pid"
wait "$pid"

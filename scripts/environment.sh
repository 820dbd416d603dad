# Sourced by the scripts beside it: makes .venv with the newest suitable Python and installs the project into it.
# Needs Python 3.10 to 3.13 with its venv module, and a package index.

suitable='import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'

find_python() {
    for name in python3 python3.13 python3.12 python3.11 python3.10 python; do
        if "$name" -c "$suitable" >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    echo "no suitable Python here; needed: 3.10 to 3.13, with its venv module (Debian: python3-venv)" >&2
    return 1
}

# install EXTRAS: the project in place, with these extras; nothing to do where that was done for this pyproject.toml.
install() {
    if ! .venv/bin/python -c "$suitable" >/dev/null 2>&1; then
        found=$(find_python)
        echo "making .venv with $("$found" --version)" >&2
        "$found" -m venv --clear .venv
    fi
    stamp=".venv/installed-$1"
    if ! cmp -s pyproject.toml "$stamp"; then
        echo "installing gapless[$1] (about a minute)" >&2
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$1]"
        cp pyproject.toml "$stamp"
    fi
}

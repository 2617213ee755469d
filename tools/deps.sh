#!/usr/bin/env bash
# Installs what is missing. On other systems than Debian and Ubuntu it names the packages.
#
#   tools/deps.sh [--quiet] build     what compiling needs
#   tools/deps.sh [--quiet] test      that, the library for matrix products on this CPU, and pgrep
#   tools/deps.sh [--quiet] develop   that, and formatters, checkers, sanitizers, fuzzers
#   tools/deps.sh [--quiet] ssh       what make test-ssh needs besides
#   tools/deps.sh [--quiet] mpi       what make test-mpi needs besides
#   tools/deps.sh [--quiet] cross     what make test-cross needs besides
set -u

quiet=no
if [ "${1:-}" = --quiet ]; then
    quiet=yes
    shift
fi
purpose=${1:-test}
missing=()

say() { [ $quiet = yes ] || echo "$*"; }

# need COMMAND PACKAGE: a program may come from anywhere, not only from the package.
need() { command -v "$1" > /dev/null || missing+=("$2"); }

# need_header FILE PACKAGE
need_header() { [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ] || missing+=("$2"); }

# need_library PATTERN PACKAGE: shared libraries that are loaded at run time.
need_library() {
    local folder
    for folder in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib; do
        compgen -G "$folder/$1" > /dev/null && return
    done
    missing+=("$2")
}

need_build_tools() {
    need cc gcc
    need meson meson
    need ninja ninja-build
    need pkg-config pkg-config
    need python3 python3
    need_header zlib.h zlib1g-dev
}

# Images: without these everything else is built, and JPEG or PNG names the package.
need_image_libraries() {
    need_header turbojpeg.h libturbojpeg0-dev
    need_header png.h libpng-dev
}

# Matrix products: the fastest library on each kind of CPU, in a build without threads of its own
# where there is one. Nothing needs it: large products are up to 10 % faster on AVX-512, and the
# tests of the engines have one to try.
need_matrix_library() {
    case $(uname -m) in
        x86_64) need_library 'libdnnl.so*' libdnnl-dev ;;
        aarch64) need_library 'blis-serial/libblis.so*' libblis4-serial ;;
        *) need_library 'libopenblas.so*' libopenblas0 ;;
    esac
}

need_developer_tools() {
    need clang clang
    need clang-format clang-format
    need clang-tidy clang-tidy
    need cppcheck cppcheck
    need ccache ccache
}

need_ssh() {
    need ssh openssh-client
    [ -x /usr/sbin/sshd ] || need sshd openssh-server # not in the search path of users
    need ip iproute2
}

# Not for every test run: they are large, and without them two tests are skipped in words. Both can be
# installed side by side; Debian's mpirun stays OpenMPI's then, and mpirun.mpich is the other.
need_mpi() {
    need mpirun.openmpi openmpi-bin
    need mpirun.mpich mpich
    need_library 'pkgconfig/ompi-c.pc' libopenmpi-dev
    need_library 'pkgconfig/mpich.pc' libmpich-dev
}

# The other kind of CPU: compilers, an emulator, and libraries as packages of a foreign architecture.
need_cross() {
    case $(uname -m) in
        x86_64) cpu=aarch64 architecture=arm64 libraries=(libblis4-serial libopenblas0) ;;
        aarch64) cpu=x86_64 architecture=amd64 libraries=(libdnnl3 libopenblas0) ;;
        *) return ;;
    esac
    need "$cpu-linux-gnu-gcc" "crossbuild-essential-$architecture"
    need "qemu-$cpu" qemu-user
    for library in zlib1g-dev libpng-dev libturbojpeg0-dev "${libraries[@]}"; do
        dpkg -s "$library:$architecture" > /dev/null 2>&1 || missing+=("$library:$architecture")
    done
    foreign=$architecture
}

foreign=
need_build_tools
need_image_libraries
[ "$purpose" = build ] || need_matrix_library
[ "$purpose" = build ] || need pgrep procps # tests find the processes of a job by it
[ "$purpose" != develop ] || need_developer_tools
[ "$purpose" != ssh ] || need_ssh
[ "$purpose" != mpi ] || need_mpi
[ "$purpose" != cross ] || need_cross

if [ ${#missing[@]} -eq 0 ]; then
    say "nothing is missing"
    exit 0
fi

# Matrix and image libraries, and pgrep, are no reason to stop a build or a test: all else works
# without them, some of it slower.
goes_without() {
    [ "$purpose" != develop ] && [ $quiet = yes ] || return
    missing=()
    need_build_tools
    [ ${#missing[@]} -eq 0 ] && echo "optional; going on without" >&2
}

if ! command -v apt-get > /dev/null; then
    echo "missing; Debian's names: ${missing[*]}" >&2
    goes_without && exit 0
    echo "install them with this system's package manager, then run this again" >&2
    exit 1
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null || {
        echo "missing: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2
        goes_without && exit 0
        exit 1
    }
    root=(sudo)
fi

echo "installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { ${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@"; }
if [ -n "$foreign" ]; then
    ${root[@]+"${root[@]}"} dpkg --add-architecture "$foreign"
fi
if { apt update && apt install -y --no-install-recommends "${missing[@]}"; } > "$log" 2>&1; then
    exit 0
fi
tail -n 20 "$log" >&2
echo "could not install ${missing[*]}" >&2
goes_without

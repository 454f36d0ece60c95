#!/usr/bin/env bash
# Tests the user-space NVMe driver against the NVMe controller that QEMU emulates, behind an emulated Intel IOMMU:
#   tests/trials/nvme/run_in_qemu.sh [--trial EXECUTABLE] [--commands N] [--seed N] [--mdts N]
#                                    [--tests EXECUTABLE] [--limit SECONDS]
# Without --trial it compiles nvme_trial itself. The guest is Debian's cloud kernel and an initramfs of busybox, the
# kernel's VFIO modules and nvme_trial; the packages are downloaded with apt-get and unpacked, not installed. Needs no
# root and no device. Prints the trial's lines. Exit code 0: no error; 1: errors or a timeout; 2: something is missing.
# --mdts: largest transfer as a power of two of pages. 10 is 4 MiB, so that PRP lists of two pages occur; 7 is QEMU's
# default, 512 KiB.
# --tests: test_variants, whose tests NvmeUser* then also run in the guest; they test the storage engine nvme_user.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
trial='' commands=100000 seed=1 mdts=10 tests='' limit=1800
usage() {
  sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2
  exit 2
}
while (($#)); do
  (($# >= 2)) || usage
  case $1 in
    --trial) trial=$(realpath "$2") ;;
    --commands) commands=$2 ;;
    --seed) seed=$2 ;;
    --mdts) mdts=$2 ;;
    --tests) tests=$(realpath "$2") ;;
    --limit) limit=$2 ;;
    *) usage ;;
  esac
  shift 2
done
need() {   # need COMMAND PACKAGE
  command -v "$1" >/dev/null || { echo "$1 is missing; run: apt-get install $2" >&2; exit 2; }
}
need qemu-system-x86_64 qemu-system-x86
need cpio cpio
need dpkg-deb dpkg
need apt-get apt

# The packages are kept in build/, so that another run downloads nothing.
packages=$root/build/nvme-guest
mkdir -p "$packages"
unpacked() {   # unpacked PACKAGE: downloads and unpacks a package, prints its folder
  local folder=$packages/$1
  if [[ ! -d $folder ]]; then
    rm -rf "$folder.new"
    mkdir "$folder.new"
    (cd "$folder.new" && apt-get download -qq "$1" 2>"$folder.log" && dpkg-deb -x ./*.deb . && rm ./*.deb) || {
      cat "$folder.log" >&2
      echo "cannot download the package $1; run: apt-get update" >&2
      exit 2
    }
    mv "$folder.new" "$folder"
  fi
  echo "$folder"
}
image=$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" { print $2; exit }')
[[ -n $image ]] || { echo "apt knows no linux-image-cloud-amd64; this trial needs Debian's packages" >&2; exit 2; }
kernel=$(unpacked "$image")
busybox=$(unpacked busybox-static)

guest=$(mktemp -d)
trap 'rm -rf "$guest"' EXIT
mkdir -p "$guest/root/bin" "$guest/root/modules"
if [[ -z $trial ]]; then
  need c++ g++
  echo '#include <fmt/format.h>' | c++ -E -x c++ - >/dev/null 2>&1 || { echo "run: apt-get install libfmt-dev" >&2; exit 2; }
  trial=$guest/nvme_trial
  c++ -std=c++20 -O2 -static -DFMT_HEADER_ONLY -I"$root" -o "$trial" "$root"/tests/trials/nvme/nvme_trial.cpp \
    "$root"/variants/storage/nvme/*.cpp "$root"/common/threads/*.cpp
fi
cp "$busybox/bin/busybox" "$guest/root/bin/"
cp "$trial" "$guest/root/bin/nvme_trial"
if [[ -n $tests ]]; then   # with its shared libraries
  cp "$tests" "$guest/root/bin/tests"
  ldd "$tests" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$guest/root$(dirname "$library")"
    cp -L "$library" "$guest/root$library"
  done
fi
find "$kernel/lib/modules" \( -name 'vfio*.ko*' -o -name 'irqbypass.ko*' \) -exec cp {} "$guest/root/modules/" \;
xz -dq "$guest"/root/modules/*.xz 2>/dev/null || true   # newer kernels have compressed modules
cat >"$guest/root/init" <<TEXT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for module in irqbypass vfio_virqfd vfio vfio_iommu_type1 vfio-pci-core vfio-pci; do
  [ ! -e /modules/\$module.ko ] || insmod /modules/\$module.ko
done
for device in /sys/bus/pci/devices/*; do
  [ "\$(cat \$device/class)" = 0x010802 ] || continue
  address=\${device##*/}
  echo vfio-pci >\$device/driver_override
  echo \$address >\$device/driver/unbind
  echo \$address >/sys/bus/pci/drivers_probe
  nvme_trial \$address $commands $seed
  echo "exit code \$?"
  if [ -e /bin/tests ]; then
    FEEDRATE_NVME_DEVICE=\$address tests --gtest_color=no --gtest_filter='NvmeUser*'
    echo "exit code of the tests \$?"
  fi
done
poweroff -f
TEXT
chmod +x "$guest/root/init"
(cd "$guest/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$guest/initramfs"
truncate -s 256M "$guest/drive"

status=0
timeout "$limit" qemu-system-x86_64 -accel tcg -machine q35,kernel-irqchip=split -cpu max -smp 2 -m 1G \
  -nodefaults -no-user-config -no-reboot -display none -serial stdio -device intel-iommu,intremap=on \
  -drive "file=$guest/drive,format=raw,if=none,id=drive,cache=unsafe" -device "nvme,serial=trial,drive=drive,mdts=$mdts" \
  -kernel "$(echo "$kernel"/boot/vmlinuz-*)" -initrd "$guest/initramfs" \
  -append 'console=ttyS0 intel_iommu=on no_timer_check quiet panic=-1' </dev/null 2>&1 | tr -d '\r' | tee "$guest/log" || status=$?
((status != 124)) || echo "the guest did not end within $limit s" >&2
grep -qx 'exit code 0' "$guest/log" || exit 1
[[ -z $tests ]] || grep -qx 'exit code of the tests 0' "$guest/log" || exit 1

"""Run a command and print its time and memory as JSON: python -I -S launch.py OUT ERR COMMAND…

The JSON has the seconds of the wall clock and of the processors (of the command and its children), the maximum resident
memory of one of its processes in bytes, and the exit code. This is a small process because the memory of the process
that starts a command counts as memory of the command.
"""

import json
import os
import sys
import time

out, err, *command = sys.argv[1:]
NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
files += [(os.POSIX_SPAWN_OPEN, number, path, NEW, 0o600) for number, path in ((1, out), (2, err))]
begun = time.perf_counter()
pid = os.posix_spawnp(command[0], command, os.environ, file_actions=files)
_, status, used = os.wait4(pid, 0)
wall = time.perf_counter() - begun
found = {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024}
print(json.dumps(found | {"code": os.waitstatus_to_exitcode(status)}))

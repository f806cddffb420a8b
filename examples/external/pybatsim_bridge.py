#!/usr/bin/env python3
"""Between a queue and a scheduler of pybatsim, unchanged: lines on stdin and stdout there, ZeroMQ here.

    stealgrid simulate EXPERIMENT.toml --strategy local --local "exec=python3 examples/external/pybatsim_bridge.py easyBackfill"

Needs pybatsim 3 from PyPI with pyzmq, see docs/EXTERNAL.md. Arguments are those of the command pybatsim; paths absolute.
"""
import os
import subprocess
import sys
import tempfile

import zmq

with tempfile.TemporaryDirectory() as folder:
    endpoint = f"ipc://{folder}/socket"
    command = [sys.executable, "-c", "from batsim.cmds.launcher import main; main()", *sys.argv[1:],
               "--socket-endpoint", endpoint, "--verbosity", "error"]
    # What it prints is no answer, and files that it writes are nobody's.
    scheduler = subprocess.Popen(command, stdout=sys.stderr.fileno(), cwd=folder,
                                 env={**os.environ, "PYTHONHASHSEED": "0"})
    socket = zmq.Context().socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(endpoint)
    for line in sys.stdin:
        socket.send_string(line)
        while not socket.poll(100):
            if scheduler.poll() is not None:
                sys.exit("the scheduler of pybatsim has ended")
        print(socket.recv_string(), flush=True)
    scheduler.wait()

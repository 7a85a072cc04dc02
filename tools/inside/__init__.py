"""Scripts that read the tree *inside* the sandbox: standard library only, one request in, one reply out.

They run as `python -P -s -S -B -c … NAME` with this folder mounted, get a JSON object on standard input and print
one. A hostile source file can crash the script, but neither sleuth nor the host.
"""

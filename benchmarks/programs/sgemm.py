"""The most that the machine's cores can do: products of two square matrices of 32-bit numbers."""

import json
import sys
import time

import torch
from pace import answer, command, loaded

settings = json.loads(sys.argv[1])
size = settings["size"]
left, right = torch.rand(size, size), torch.rand(size, size)
into = torch.empty(size, size)
loaded()
for _ in range(3):
    torch.mm(left, right, out=into)
answer(ready=True)
while True:
    order = command()
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < order["seconds"] or len(times) < 3:
        begin = time.perf_counter()
        torch.mm(left, right, out=into)
        times.append(time.perf_counter() - begin)
    answer(flops=2 * size**3 / sorted(times)[len(times) // 2])

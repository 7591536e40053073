#!/usr/bin/env python3
"""One PyTorch training step of GPT-2, timed: the peer of tests/bench/gpt2.py.

    torch_peer.py [--compile] [--layers 12 --width 768 --heads 12 --vocab 50257] [--batch 4] [--seq
    256] [--steps 8]

Prints one JSON object: seconds per step (median), resident bytes before the model and at the peak,
versions and threads. Needs torch and transformers.
"""

import argparse
import json
import resource
import statistics
import time


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (
        ("layers", 12),
        ("width", 768),
        ("heads", 12),
        ("vocab", 50257),
        ("batch", 4),
        ("seq", 256),
        ("steps", 8),
        ("threads", 0),
    ):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--compile", action="store_true")
    o = p.parse_args()

    import torch
    import transformers

    if o.threads:
        torch.set_num_threads(o.threads)
    before = resident()
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=o.vocab,
        n_positions=1024,
        n_embd=o.width,
        n_layer=o.layers,
        n_head=o.heads,
        attn_pdrop=0.0,
        embd_pdrop=0.0,
        resid_pdrop=0.0,
        attn_implementation="sdpa",
        use_cache=False,
    )
    model = transformers.GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)
    tokens = torch.randint(0, o.vocab, (o.batch, o.seq))

    def loss_of(ids):
        return model(input_ids=ids, labels=ids).loss

    f = torch.compile(loss_of) if o.compile else loss_of
    seconds, losses = [], []
    for _ in range(o.steps + 2):
        start = time.perf_counter()
        loss = f(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    print(
        json.dumps(
            {
                "what": "torch " + ("compiled" if o.compile else "eager"),
                "torch": torch.__version__,
                "threads": torch.get_num_threads(),
                "blas": "MKL" if torch.backends.mkl.is_available() else "other",
                "step_seconds": statistics.median(seconds[2:]),
                "first_seconds": seconds[0],
                "import_bytes": before,
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "losses": losses[:3],
            }
        )
    )


if __name__ == "__main__":
    main()

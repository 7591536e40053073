#!/usr/bin/env python3
"""ckrun sample: text from a model whose logits are rows of a table, the last token's.

    sample.py CKC CKRUN

What follows a token is known in closed form.
"""

import numpy as np

import ck

V, WINDOW = 12, 8
MODEL = """graph @table {
	input %%tokens: i64[2,%d]
	input %%segment_ids: i64[2,%d]
	input %%labels: i64[2,%d]
	param %%w: f32[%d,%d] = {%s}
	const %%shape: i64[2] = {%d, %d}
	%%z = gather %%w, %%tokens {axis=0}
	%%s = cast %%segment_ids {to=f32}
	%%axes = unsqueeze %%s {axes=[2]}
	%%y%s = sub %%z, %%axes
	%%rows = reshape %%y, %%shape
	%%flat = reshape %%labels {shape=[%d]}
	%%loss: f32[] output, _, _ = sce %%rows, %%flat
}
"""


class Sample(ck.Bench):
    def build(self, output):
        rng = np.random.default_rng(3)
        self.w = rng.normal(0, 1.5, (V, V)).astype(np.float32)
        cells = ", ".join(repr(float(x)) for x in self.w.ravel())
        n = 2 * WINDOW
        mark = " output" if output else ""
        text = MODEL % (WINDOW, WINDOW, WINDOW, V, V, cells, n, V, mark, n)
        with open(self.path("t.ck"), "w") as f:
            f.write(text)
        more = [] if output else ["--output", "logits"]
        done = self.ckc("t.ck", "-o", self.path("t.so"), "--loss", "loss", "--quiet", *more)
        return self.must(done, f"build, output {output}")

    def tokens(self, *flags):
        done = self.ckrun("sample", self.path("t.so"), "--tokens", "u16", *flags)
        self.must(done, f"sample {flags}")
        return [int(x) for x in done.stdout.split()]

    def greedy(self):
        want = [3]
        for _ in range(30):
            want.append(int(self.w[want[-1]].argmax()))
        got = self.tokens("--prompt", "3", "--length", 30, "--temperature", 0)
        self.check(got == want, f"temperature 0: {got}, expected {want}")
        got = self.tokens("--prompt", "3", "--length", 30, "--top-k", 1)
        self.check(got == want, f"top-k 1: {got}, expected {want}")

    def prompts(self):
        """Without a prompt the text begins behind token 0, which is not written."""
        want = self.tokens("--prompt", "0", "--length", 5, "--temperature", 0)[1:]
        for flags in ((), ("--prompt", "")):
            got = self.tokens(*flags, "--length", 5, "--temperature", 0)
            self.check(got == want, f"{flags}: {got}, expected {want}")

    def forward_only(self):
        """Logits of a program without training are an output, too; without evaluation none."""
        build = ("t.ck", "-o", self.path("f.so"), "--quiet", "--output", "logits")
        self.must(self.ckc(*build, "--loss", "loss", "--forward-only"), "--forward-only")
        done = self.ckrun("sample", self.path("f.so"), "--length", 5, "--temperature", 0)
        self.must(done, "sample of --forward-only")
        done = self.ckc(*build, "--loss", "loss", "--eval", "off")
        self.check(
            done.returncode == 1 and "--output logits matches no output" in done.stderr, done.stderr
        )

    def frequencies(self):
        """Of what follows each token, in 4,000 of them."""
        flags = ("--prompt", "0", "--length", 4000, "--temperature", "0.8")
        got = self.tokens(*flags, "--top-k", 5, "--seed", 9)
        self.check(got == self.tokens(*flags, "--top-k", 5, "--seed", 9), "the same seed")
        self.check(got != self.tokens(*flags, "--top-k", 5, "--seed", 8), "another seed")
        seen = np.zeros((V, V))
        for a, b in zip(got, got[1:]):
            seen[a, b] += 1
        chi, free = 0.0, 0
        for a in range(V):
            if seen[a].sum() < 50:
                continue
            kept = np.argsort(-self.w[a])[:5]
            z = np.exp(self.w[a, kept].astype(float) / 0.8)
            want = np.zeros(V)
            want[kept] = z / z.sum() * seen[a].sum()
            self.check(seen[a][want == 0].sum() == 0, f"beyond the 5 likeliest after {a}")
            some = want > 3
            chi += ((seen[a] - want)[some] ** 2 / want[some]).sum()
            free += some.sum() - 1
        # mean `free`, deviation sqrt(2 free)
        self.check(
            free > 8 and abs(chi - free) < 5 * (2 * free) ** 0.5,
            f"frequencies: chi^2 {chi}, expected {free}",
        )

    def refused(self):
        for flags, what in (
            (["--tokens", "u16", "--prompt", "1,x"], "expected numbers of tokens"),
            (["--tokens", "u16", "--prompt", "12"], "token 12 is beyond the model's 12"),
            (["--tokens", "u16", "--prompt", "1" * 21], "found '" + "1" * 21),
            (["--tokens", "u17"], "--tokens must be u16, u32 or bytes"),
            (["--data", "x"], "--data is not an option of ckrun sample"),
            (["--prompt", "a"], "token 97 is beyond"),
        ):
            done = self.ckrun("sample", self.path("t.so"), *flags)
            self.check(done.returncode in (1, 2) and what in done.stderr, f"{flags}: {done.stderr}")
        done = self.ckrun(self.path("t.so"), "--top-k", 3)
        self.check("--top-k is only valid for ckrun sample" in done.stderr, done.stderr)
        done = self.ckc("t.ck", "-o", self.path("n.so"), "--loss", "loss", "--quiet")
        done = self.ckrun("sample", self.path("n.so"))
        self.check(done.returncode == 1 and "--output logits" in done.stderr, done.stderr)


def main():
    b = Sample()
    b.build(True)
    b.greedy()
    b.build(False)
    b.greedy()
    b.prompts()
    b.forward_only()
    b.frequencies()
    b.refused()
    b.finish()


main()

/* GPUs by name.
 *
 * what    peak rates as vendors state them for dense operands: products in
 *         f32 (where a device has a faster mode that keeps f32's range, it is
 *         not counted) and in 16 bits with sums in f32, vector units, memory;
 *         links in one direction: NVLink where the GPUs of a node have it,
 *         else PCIe; the network of NVIDIA's own systems (DGX A100: 200 Gb/s
 *         a GPU, DGX H100, H200 and B200: 400 Gb/s).  For cards without such a
 *         system all devices are in one node.  Latencies are those of a step
 *         of a ring in the tuning model of NCCL (protocol Simple) over NVLink,
 *         PCIe and a network
 * reach   what of these rates is reached.  Copies: nine tenths of memory's
 *         rate.  Products: 700 of the 989 TFLOP/s of an H100, whose clock
 *         falls under them, more on GPUs with less to do a cycle.  Loops and
 *         attention: by the instructions of their machine code
 *         (tests/bench/gpu/kernels.py).  1.5 us to start a kernel of a graph.
 *         None of this was measured with ckc's kernels
 * source  NVIDIA's data sheets and, for GeForce, its white papers on Ampere
 *         GA102, Ada and Blackwell; NCCL 2.18, src/graph/tuning.cc
 */
#include "passes/cost/cost.h"

#include <ctype.h>
#include <string.h>

enum { NVLINK = 100 };          /* GB/s that PCIe does not reach */

#define GPU(name_, f32, f16, tb, gb, link_, net_, host_, reach) { \
	.name = name_, .product_flops = (f32) * 1e12, \
	.product_flops16 = (f16) * 1e12, .vector_flops = (f32) * 1e12, \
	.bandwidth = (tb) * 1e12, .launch = 1.5e-6, .memory = (gb) * 1e9, \
	.link = (link_) * 1e9, \
	.link_latency = (link_) > NVLINK ? 3.4e-6 : 5.7e-6, \
	.node = (net_) ? 8 : 0, .net = (net_) * 1e9, .net_latency = 14e-6, \
	.host = (host_) * 1e9, .host_latency = 10e-6, \
	.memory_share = 0.9, .product_start = 128, reach }

/* Shares of products and of loops, which on an A100 have as many other
 * instructions as those of its few float units; attention's seconds, forward
 * and backward, over those of its products at that rate.  Since Hopper, tensor
 * cores are faster than mma.sync is. */
#define REACH(product, vector, forward, backward) \
	.product_share = (product), .vector_share = (vector), \
	.scale = { [OP_ATTENTION] = (forward), \
	           [OP_ATTENTION_GRAD] = (backward), [OP_CLASSIFIER] = 1.15 }
#define A100 REACH(0.85, 0.33, 1.0, 1.9)
#define AMPERE REACH(0.85, 0.17, 1.0, 1.9)
#define HOPPER REACH(0.71, 0.17, 1.7, 3.4)
#define BLACKWELL REACH(0.71, 0.17, 2.2, 5.0)

static const struct device_profile known[] = {
	GPU("A100-40GB", 19.5, 312, 1.555, 40, 300, 25, 25, A100),
	GPU("A100-80GB", 19.5, 312, 2.039, 80, 300, 25, 25, A100),
	GPU("H100", 66.9, 989, 3.35, 80, 450, 50, 55, HOPPER),
	GPU("H100-PCIe", 51.2, 756, 2.0, 80, 300, 0, 55, HOPPER),
	GPU("H100-NVL", 60, 835, 3.9, 94, 300, 0, 55, HOPPER),
	GPU("H200", 66.9, 989, 4.8, 141, 450, 50, 55, HOPPER),
	GPU("B200", 75, 2250, 7.7, 180, 900, 50, 55, BLACKWELL),
	GPU("A10", 31.2, 125, 0.6, 24, 32, 0, 25, AMPERE),
	GPU("L4", 30.3, 121, 0.3, 24, 32, 0, 25, AMPERE),
	GPU("L40S", 91.6, 362, 0.864, 48, 32, 0, 25, AMPERE),
	GPU("RTX-3090", 35.6, 71, 0.936, 24, 32, 0, 25, AMPERE),
	GPU("RTX-4090", 82.6, 165.2, 1.008, 24, 32, 0, 25, AMPERE),
	GPU("RTX-5090", 104.8, 209.5, 1.792, 32, 64, 0, 55, AMPERE),
};

/* What nvidia-smi and users call them. */
static const struct { const char *name, *known; } others[] = {
	{ "A100-SXM4-40GB", "A100-40GB" },
	{ "A100-SXM4-80GB", "A100-80GB" },
	{ "H100-80GB", "H100" },
	{ "H100-SXM", "H100" },
	{ "H100-SXM5", "H100" },
	{ "H100-80GB-HBM3", "H100" },
	{ "H200-141GB", "H200" },
	{ "H200-SXM", "H200" },
};

/* The next letter or digit that counts, in upper case; 0 at the end. */
static int
next_char(const char **s)
{
	while (**s && strchr(" -_", **s))
		++*s;
	return **s ? toupper((unsigned char)*(*s)++) : 0;
}

/* Does s begin with `head`, but for case, blanks and dashes?  If so, what
 * follows it. */
static const char *
after(const char *s, const char *head)
{
	for (int c; (c = next_char(&head));)
		if (next_char(&s) != c)
			return NULL;
	return s;
}

static bool
is_same_name(const char *a, const char *b)
{
	const char *rest = after(a, b);

	return rest && !next_char(&rest);
}

const struct device_profile *
device_known(const char *name)
{
	static const char *const makers[] = { "NVIDIA", "GeForce" };

	for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
		const char *rest = after(name, makers[i]);

		name = rest ? rest : name;
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (is_same_name(name, others[i].name))
			name = others[i].known;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (is_same_name(name, known[i].name))
			return &known[i];
	return NULL;
}

const char *
device_names(Arena *arena)
{
	const char *text = "";

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		text = arena_printf(arena, "%s%s%s", text, i ? ", " : "",
		                    known[i].name);
	return text;
}

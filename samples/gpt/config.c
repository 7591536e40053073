/* The command line: presets from papers, and what changes them. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct config preset[] = {
	/* Brown et al. 2020, Radford et al. 2019 */
	{ .name = "gpt2", .layers = 12, .hidden = 768, .heads = 12,
	  .seq = 1024, .vocab = 50257 },
	{ .name = "gpt2-xl", .layers = 48, .hidden = 1600, .heads = 25,
	  .seq = 1024, .vocab = 50257 },
	/* Korthikanti et al. 2023, table 3 */
	{ .name = "22B", .layers = 48, .hidden = 6144, .heads = 64,
	  .seq = 2048, .vocab = 51200, .batch = 4 },
	{ .name = "175B", .layers = 96, .hidden = 12288, .heads = 96,
	  .seq = 2048, .vocab = 51200 },
	{ .name = "530B", .layers = 105, .hidden = 20480, .heads = 128,
	  .seq = 2048, .vocab = 51200 },
	{ .name = "1T", .layers = 128, .hidden = 25600, .heads = 160,
	  .seq = 2048, .vocab = 51200 },
	/* Touvron et al. 2023 */
	{ .name = "llama-7B", .like = "llama", .layers = 32, .hidden = 4096,
	  .heads = 32, .seq = 4096, .vocab = 32000, .ffn = 11008 },
	{ .name = "llama-70B", .like = "llama", .layers = 80, .hidden = 8192,
	  .heads = 64, .kv_heads = 8, .seq = 4096, .vocab = 32000,
	  .ffn = 28672 },
};

static int
usage(FILE *out)
{
	fputs("usage: gpt [options] -o FILE.onnx\n"
	      "  --model NAME       a preset:", out);
	for (size_t i = 0; i < sizeof preset / sizeof *preset; i++)
		fprintf(out, " %s", preset[i].name);
	fputs("\n"
	      "  --like gpt|llama   layout of a layer (gpt)\n"
	      "  --layers N  --hidden N  --heads N  --kv-heads N  --ffn N\n"
	      "  --seq N  --vocab N  --batch N\n"
	      "  --dropout P        ratio, 0 leaves it out (gpt 0.1, llama 0)"
	      "\n"
	      "  --activation gelu|relu|tanh\n"
	      "  --untied           a last product with a weight of its own\n"
	      "  --weights          write random weights to FILE.onnx.data\n"
	      "  --seed N           for them (1)\n", out);
	return out == stdout ? 0 : 2;
}

int
config_bad(const char *option, const char *value)
{
	fprintf(stderr, "gpt: %s: unexpected value '%s'\n", option, value);
	return 2;
}

static bool
set_number(struct config *c, const char *option, const char *value)
{
	const struct {
		const char *option;
		int64_t *field;
	} number[] = {
		{ "--layers", &c->layers }, { "--hidden", &c->hidden },
		{ "--heads", &c->heads }, { "--kv-heads", &c->kv_heads },
		{ "--seq", &c->seq }, { "--vocab", &c->vocab },
		{ "--batch", &c->batch }, { "--ffn", &c->ffn },
		{ "--seed", &c->seed },
	};
	char *end;

	for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
		if (strcmp(option, number[i].option))
			continue;
		errno = 0;
		*number[i].field = strtoll(value, &end, 10);
		return *value && !*end && !errno && *number[i].field > 0
			&& *number[i].field <= 1 << 24;
	}
	return false;
}

static bool
set_word(struct config *c, const char *option, const char *value)
{
	char *end;

	if (!strcmp(option, "-o")) {
		c->out = value;
		return *value;
	}
	if (!strcmp(option, "--like")) {
		c->like = value;
		return !strcmp(value, "gpt") || !strcmp(value, "llama");
	}
	if (!strcmp(option, "--activation")) {
		c->activation = value;
		return !strcmp(value, "gelu") || !strcmp(value, "relu")
			|| !strcmp(value, "tanh");
	}
	if (!strcmp(option, "--dropout")) {
		c->dropout = strtod(value, &end);
		return *value && !*end && c->dropout >= 0 && c->dropout < 1;
	}
	return set_number(c, option, value);
}

static bool
set_model(struct config *c, const char *value)
{
	const char *out = c->out;

	for (size_t i = 0; i < sizeof preset / sizeof *preset; i++)
		if (!strcmp(preset[i].name, value)) {
			*c = preset[i];
			c->out = out;
			c->dropout = -1;
			return true;
		}
	return false;
}

static void
fill_in(struct config *c)
{
	if (!c->like)
		c->like = "gpt";
	if (!c->activation)
		c->activation = "gelu";
	if (!c->batch)
		c->batch = 1;
	if (!c->kv_heads)
		c->kv_heads = c->heads;
	if (!c->seed)
		c->seed = 1;
	if (!c->ffn && is_llama(c))
		c->ffn = (c->hidden * 8 / 3 + 255) / 256 * 256;
	if (!c->ffn)
		c->ffn = 4 * c->hidden;
	if (c->dropout < 0)
		c->dropout = is_llama(c) ? 0 : 0.1;
	c->untied |= is_llama(c);
}

int
config_parse(struct config *c, int argc, char **argv)
{
	*c = (struct config){ .layers = 12, .hidden = 768, .heads = 12,
	                      .seq = 1024, .vocab = 50257, .dropout = -1 };
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];

		if (!strcmp(a, "--help"))
			return usage(stdout);
		if (!strcmp(a, "--weights")) {
			c->weights = true;
		} else if (!strcmp(a, "--untied")) {
			c->untied = true;
		} else if (i + 1 == argc) {
			return usage(stderr);
		} else if (!strcmp(a, "--model")) {
			if (!set_model(c, argv[++i]))
				return config_bad(a, argv[i]);
		} else if (!set_word(c, a, argv[++i])) {
			return config_bad(a, argv[i]);
		}
	}
	fill_in(c);
	if (!c->out)
		return usage(stderr);
	if (c->hidden % c->heads || c->heads % c->kv_heads
	    || (is_llama(c) && c->hidden / c->heads % 2)) {
		fputs("gpt: --hidden must be a multiple of --heads, and "
		      "--heads of --kv-heads\n", stderr);
		return 2;
	}
	return -1;
}

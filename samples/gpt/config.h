/* Which model is written, as the command line says. */
#ifndef GPT_CONFIG_H
#define GPT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct config {
	const char *name, *like, *activation, *out;
	int64_t layers, hidden, heads, kv_heads, seq, vocab, batch, ffn;
	int64_t seed;
	double dropout;
	bool weights, untied;
};

static inline bool
is_llama(const struct config *c)
{
	return !strcmp(c->like, "llama");
}

/* -1, or the exit status that the command line asks for. */
int config_parse(struct config *, int argc, char **argv);
/* Say that the option cannot have that value; 2. */
int config_bad(const char *option, const char *value);

#endif

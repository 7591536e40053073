/* Configurations as options to type. */
#include "passes/auto/auto.h"

#include <string.h>

struct words {
	const char **word;
	int n;
	Arena *arena;
};

static void
add_word(struct words *w, bool wanted, const char *word)
{
	if (wanted)
		w->word[w->n++] = word;
}

static void
add_count(struct words *w, bool wanted, const char *option, int64_t n)
{
	add_word(w, wanted, option);
	add_word(w, wanted, arena_printf(w->arena, "%lld", (long long)n));
}

int
auto_words(const struct auto_request *r, const struct auto_config *c, bool all,
           const char *word[AUTO_WORDS], Arena *a)
{
	const struct auto_free *may = &r->may;
	struct words w = { .word = word, .arena = a };

	if (may->batch) {
		add_word(&w, true, "--dim");
		add_word(&w, true, arena_printf(a, "%s=%lld", r->batch_dim,
		                                (long long)c->batch));
	}
	/* a pipeline has as many micro-batches as stages, if not told */
	add_count(&w, (c->accum > 1 || c->pp > 1) && (all || may->accum),
	          c->pp > 1 ? "--microbatches" : "--grad-accum", c->accum);
	add_count(&w, c->pp > 1 && (all || may->pp), "--pp", c->pp);
	add_count(&w, c->tp > 1 && (all || may->tp), "--tp", c->tp);
	add_word(&w, c->sp && (all || may->sp), "--sp");
	add_word(&w, c->halves && (all || may->halves), "--halves");
	add_word(&w, c->halves && (all || may->halves), "on");
	add_count(&w, c->dp > 1 && (all || may->dp), "--dp", c->dp);
	add_word(&w, c->dp == 1 && c->tp > 1, "--dp");
	add_word(&w, c->dp == 1 && c->tp > 1, "off");
	add_count(&w, c->ep > 1 && (all || may->ep), "--ep", c->ep);
	add_count(&w, c->zero > 0 && (all || may->zero), "--zero", c->zero);
	add_count(&w, c->zero_group > 0 && (all || may->zero_group),
	          "--zero-group", c->zero_group);
	add_word(&w, c->offload && (all || may->offload), "--offload");
	add_word(&w, c->offload && (all || may->offload), "auto");
	return w.n;
}

/* The word as a shell reads it. */
static const char *
quote_word(const char *word, Arena *a)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%";
	const char *text = "'";

	if (*word && !word[strspn(word, plain)])
		return word;
	for (; *word; word++)
		text = *word == '\'' ? arena_printf(a, "%s'\\''", text)
			: arena_printf(a, "%s%c", text, *word);
	return arena_printf(a, "%s'", text);
}

const char *
auto_line(const char *const *word, int n, Arena *a)
{
	const char *text = "";

	for (int i = 0; i < n; i++)
		text = arena_printf(a, "%s%s%s", text, i ? " " : "",
		                    quote_word(word[i], a));
	return text;
}

const char *
auto_options(const struct auto_request *r, const struct auto_config *c,
             Arena *a)
{
	const char *word[AUTO_WORDS];
	int n = auto_words(r, c, true, word, a);

	return n ? auto_line(word, n, a) : "(no option)";
}

const char *
auto_size(int64_t bytes, Arena *a)
{
	static const struct { int64_t size; const char *name; } unit[] = {
		{ 1000000000, "GB" }, { 1 << 30, "GiB" }, { 1000000, "MB" },
		{ 1 << 20, "MiB" }, { 1000, "KB" }, { 1 << 10, "KiB" },
	};

	for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
		if (bytes % unit[i].size == 0)
			return arena_printf(a, "%lld%s",
			                    (long long)(bytes / unit[i].size),
			                    unit[i].name);
	return arena_printf(a, "%lldB", (long long)bytes);
}

/* adapter_config.json, beside which PEFT looks for adapter_model.safetensors.
 *
 * Modules are the names of weights without their last part.  What most adapters
 * have of rank and alpha stands for all, and the others' in patterns.  Fields
 * that are left out have PEFT's defaults.
 */
#include "runtime/file/peft.h"
#include "runtime/files/inside.h"
#include "runtime/support/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct ckr_tensor *
tensor_at(const struct files *c, int32_t i)
{
	return &c->lib->program[0].tensor[i];
}

static void
write_module(FILE *f, const char *name)
{
	char *module = strndup(name, peft_module(name));

	if (module)
		utf8_json(f, module);
	free(module);
}

static int64_t
adapter_rank(const struct files *c, uint32_t i)
{
	struct ckr_tensor a = world_whole(c->world,
		tensor_at(c, c->lib->adapter[i].a));

	return a.dim[0];
}

/* The shortest number that gives the adapter's scale when it is divided by its
 * rank. */
static void
write_alpha(FILE *f, const struct files *c, uint32_t i)
{
	double rank = (double)adapter_rank(c, i);
	float scale = c->lib->adapter[i].scale;
	char text[32];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits,
		         (double)scale * rank);
		if ((float)(strtod(text, NULL) / rank) == scale)
			break;
	}
	fputs(text, f);
}

static bool
is_like(const struct files *c, uint32_t i, uint32_t k)
{
	return adapter_rank(c, i) == adapter_rank(c, k)
	       && c->lib->adapter[i].scale == c->lib->adapter[k].scale;
}

/* The adapter that most are like. */
static uint32_t
usual_adapter(const struct files *c)
{
	uint32_t best = 0, most = 0;

	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		uint32_t n = 0;

		for (uint32_t k = 0; k < c->lib->nadapter; k++)
			n += is_like(c, i, k);
		if (n > most) {
			most = n;
			best = i;
		}
	}
	return best;
}

/* Write the patterns for adapters that differ from the most common one. */
static void
write_pattern(FILE *f, const struct files *c, uint32_t like, bool alpha)
{
	const char *comma = "";

	fprintf(f, ",\n  \"%s_pattern\": {", alpha ? "alpha" : "rank");
	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		if (is_like(c, i, like))
			continue;
		fprintf(f, "%s\n    ", comma);
		write_module(f, tensor_at(c, c->lib->adapter[i].weight)->name);
		fputs(": ", f);
		if (alpha)
			write_alpha(f, c, i);
		else
			fprintf(f, "%lld", (long long)adapter_rank(c, i));
		comma = ",";
	}
	fputs(*comma ? "\n  }" : "}", f);
}

/* Modules that hold what is trained beside; a name without a dot is none's. */
static void
write_modules_to_save(FILE *f, const struct files *c, const uint32_t *list,
                      uint32_t n)
{
	const char *comma = "";

	for (uint32_t i = 0; i < n; i++) {
		const char *name = tensor_at(c, (int32_t)list[i])->name;
		bool known = !strchr(name, '.');

		for (uint32_t k = 0; k < i; k++)
			known |= peft_same_module(
				tensor_at(c, (int32_t)list[k])->name, name);
		for (uint32_t k = 0; k < c->lib->nadapter; k++)
			known |= peft_same_module(
				tensor_at(c, c->lib->adapter[k].weight)->name,
				name);
		if (known)
			continue;
		fputs(*comma ? ",\n    "
		      : ",\n  \"modules_to_save\": [\n    ", f);
		write_module(f, name);
		comma = ",";
	}
	if (*comma)
		fputs("\n  ]", f);
}

static void
write_config(FILE *f, const struct files *c, const uint32_t *list, uint32_t n)
{
	uint32_t like = usual_adapter(c), turned = 0;

	fprintf(f, "{\n  \"peft_type\": \"LORA\",\n"
	        "  \"base_model_name_or_path\": null,\n"
	        "  \"inference_mode\": true,\n  \"bias\": \"none\",\n"
	        "  \"lora_dropout\": 0.0,\n  \"r\": %lld,\n"
	        "  \"lora_alpha\": ", (long long)adapter_rank(c, like));
	write_alpha(f, c, like);
	fputs(",\n  \"target_modules\": [", f);
	for (uint32_t i = 0; i < c->lib->nadapter; i++) {
		fputs(i ? ",\n    " : "\n    ", f);
		write_module(f, tensor_at(c, c->lib->adapter[i].weight)->name);
		turned += c->lib->adapter[i].transposed != 0;
	}
	fprintf(f, "\n  ],\n  \"fan_in_fan_out\": %s",
	        turned == c->lib->nadapter ? "true" : "false");
	write_pattern(f, c, like, false);
	write_pattern(f, c, like, true);
	write_modules_to_save(f, c, list, n);
	fputs("\n}\n", f);
}

/* ---- the file ---- */

struct peft_config {
	const struct files *c;
	const uint32_t *list;
	uint32_t n;
};

static ckr_status
print_config(FILE *f, void *user)
{
	const struct peft_config *w = user;

	write_config(f, w->c, w->list, w->n);
	return CKR_OK;
}

ckr_status
peft_config_write(struct files *c, const char *adapters, const uint32_t *list,
                  uint32_t n)
{
	struct peft_config w = { c, list, n };
	struct new_file file = { .fd = -1 };
	char *path = peft_config_path(adapters);
	ckr_status s = path ? CKR_OK : err_no_memory(c->err);

	if (s == CKR_OK && world_is_first(c->world))
		s = new_file_open(&file, path, c->err);
	if (s == CKR_OK && world_is_first(c->world))
		s = new_file_print(&file, print_config, &w, c->err);
	free(path);
	return world_agree(c->world, s, "writing a file");
}

/* Write the report of `ckc inspect` as JSON. */
#include "frontend/inspect/findings.h"
#include "runtime/support/utf8.h"

static void
print_json_text(FILE *out, const char *before, const char *text)
{
	fputs(before, out);
	utf8_json(out, text);
}

static void
json_inits(struct inspect_report *x, FILE *out)
{
	static const char *const text[] = { "none", "parameter", "buffer",
	                                    "constant" };
	bool first = true;

	fputs(",\n\"initializers\": [", out);
	for (int i = 1; i < x->f->nval; i++) {
		const struct flat_val *v = &x->f->val[i];
		int64_t n = 0;

		if (!v->init)
			continue;
		print_json_text(out, first ? "\n  {\"name\": "
		                : ",\n  {\"name\": ", v->name);
		first = false;
		fprintf(out, ", \"verdict\": \"%s\", \"frozen\": %s, \"used\": "
		        "%s, \"bytes\": %jd, \"dtype\": \"%s\", "
		        "\"shape\": [", text[v->verdict],
		        v->frozen ? "true" : "false",
		        v->nuse || v->output ? "true" : "false",
		        (intmax_t)onnx_tensor_bytes(v->init, &n),
		        dtype_info[onnx_dtype(v->init->data_type)].text);
		for (size_t k = 0; k < v->init->n_dims; k++)
			fprintf(out, "%s%jd", k ? ", " : "",
			        (intmax_t)v->init->dims[k]);
		print_json_text(out, "], \"reason\": ", v->reason ? v->reason
		                : "");
		fputc('}', out);
	}
	fputs("\n]", out);
}

static void
json_ops(struct inspect_report *x, FILE *out)
{
	fputs(",\n\"operators\": [", out);
	for (int i = 0; i < x->nop; i++) {
		const struct coverage *c = &x->op[i];

		print_json_text(out, i ? ",\n  {\"op\": " : "\n  {\"op\": ",
		                c->type);
		print_json_text(out, ", \"domain\": ", c->domain);
		fprintf(out, ", \"nodes\": %d, \"forward\": %s, \"gradient\": "
		        "%s}", c->count,
		        c->support == MISSING ? "false" : "true",
		        c->support == NOT_NEEDED ? "null"
		        : c->support == GRADIENT ? "true" : "false");
	}
	fputs("\n]", out);
}

static void
json_warnings(struct inspect_report *x, FILE *out)
{
	bool first = true;
	const char *text;

	fputs(",\n\"warnings\": [", out);
	for (int i = 0; (text = findings_warning(x, i)); i++)
		print_json_text(out, i ? ",\n  " : "\n  ", text);
	fputs("\n],\n\"details\": {", out);
	for (int i = 0; i < x->lint.n; i++) {
		const struct lint_warning *d = &x->lint.at[i];

		if (!d->ndetail)
			continue;
		print_json_text(out, first ? "\n  " : ",\n  ", d->text);
		first = false;
		for (int k = 0; k < d->ndetail; k++)
			print_json_text(out, k ? ", " : ": [", d->detail[k]);
		putc(']', out);
	}
	fputs("\n}", out);
}

static void
json_bytes(const struct step_bytes *b, FILE *out)
{
	if (b->rule)
		fprintf(out, "\"optimizer\": \"%s\",\n", b->rule);
	if (b->rule && b->grad >= 0)
		fprintf(out, "\"gradient_bytes\": %jd,\n\"optimizer_bytes"
		        "\": %jd,\n", (intmax_t)b->grad,
		        (intmax_t)b->state);
	if (b->all)
		fprintf(out, "\"step_bytes\": %jd,\n", (intmax_t)b->all);
}

static void
json_verdict(const struct import_options *o, FILE *out)
{
	static const char *const text[] = { "unknown", "accepted", "unbound",
	                                    "refused" };
	bool accepted = o->outcome == OUTCOME_ACCEPTED
		|| o->outcome == OUTCOME_UNBOUND;

	fprintf(out, "\"verdict\": \"%s\"", text[o->outcome]);
	if (o->unbound)
		print_json_text(out, ",\n\"unbound\": ", o->unbound);
	if (o->refusal)
		print_json_text(out, ",\n\"refusal\": ", o->refusal);
	fprintf(out, ",\n\"trainable\": %s\n",
	        accepted && !o->all_outputs ? "true" : "false");
}

void
inspect_json(struct inspect_report *x, FILE *out)
{
	const Onnx__ModelProto *m = x->f->file->model;
	bool first = true;

	print_json_text(out, "{\n\"model\": ", x->f->file->path);
	fprintf(out, ",\n\"ir_version\": %jd,\n\"opset\": %d",
	        (intmax_t)m->ir_version, x->f->opset);
	print_json_text(out, ",\n\"producer\": ", m->producer_name
	                ? m->producer_name : "");
	fputs(",\n\"inputs\": [", out);
	FOR_VALS (v, x->g) {
		if (v->kind != V_INPUT)
			continue;
		print_json_text(out, first ? "" : ", ", v->name);
		first = false;
	}
	fputs("],\n\"outputs\": [", out);
	for (int i = 0; i < x->f->noutput; i++)
		print_json_text(out, i ? ", " : "",
		                x->f->val[x->f->output[i]].name);
	fputs("],\n\"dims\": [", out);
	for (int i = 0; i < x->ndim; i++) {
		print_json_text(out, i ? ", {\"flag\": " : "{\"flag\": ",
		                x->dim[i].flag);
		print_json_text(out, ", \"where\": ", x->dim[i].where);
		fputc('}', out);
	}
	fputc(']', out);
	json_inits(x, out);
	json_ops(x, out);
	json_warnings(x, out);
	fprintf(out, ",\n\"parameter_bytes\": %jd,\n\"buffer_bytes\": "
	        "%jd,\n", (intmax_t)x->param_bytes,
	        (intmax_t)x->buffer_bytes);
	json_bytes(&x->opt->step, out);
	json_verdict(x->opt, out);
	fputs("}\n", out);
}

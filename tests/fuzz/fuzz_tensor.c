/* Files for --const: TensorProto and .npy, as the shape of a Reshape. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/plan.h"

#include <sys/mman.h>
#include <unistd.h>

#include "frontend/import/import.h"
#include "tests/frontend/build.h"

const unsigned fuzz_variants = 1;
const bool fuzz_protobuf = true;

/* y = Reshape(x, c) for x: f32[4,6]. */
static const char *
model(void)
{
	static char path[64];
	struct buf file, graph = { 0 };
	int fd;

	if (*path)
		return path;
	put_node(&graph, "Reshape", "x c", "y", NULL);
	put_str(&graph, 2, "g");
	put_value(&graph, 11, "x", ONNX_FLOAT, 2, (int64_t[]){ 4, 6 });
	put_value(&graph, 11, "c", ONNX_INT64, 1, (int64_t[]){ 2 });
	put_value(&graph, 12, "y", ONNX_FLOAT, 2, (int64_t[]){ -1, -1 });
	file = model_of(&graph, 17);
	fd = memfd_create("model", 0);
	if (fd < 0 || write(fd, file.b, file.n) != (ssize_t)file.n)
		fuzz_fail("writing the model: %m");
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return path;
}

void
fuzz_try(const uint8_t *data, size_t n, unsigned variant)
{
	struct import_const constant = { "c", fuzz_file(data, n) };
	struct import_options o = { .nconst = 1, .constant = &constant,
	                            .all_outputs = true };
	Diag *diag = diag_new("ckc", fuzz_messages());
	struct onnx_file *file = NULL;
	Graph *g = onnx_import(model(), &o, diag, &file);
	bool ok = g != NULL;

	(void)variant;
	if (ok) {
		struct options opt = plan_options();

		opt.forward_only = true;
		ok = plan_all(g, &opt, NULL, diag);
	}
	fuzz_judge(ok, diag_errors(diag));
	graph_free(g);
	onnx_close(file);
	diag_free(diag);
}

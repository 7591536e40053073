/* Loading of a library's file. */
#include "runtime/base/library.h"
#include "runtime/library/library.h"
#include "runtime/library/program.h"
#include "runtime/library/tensor.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the file is shorter than its own header says: dlopen maps what is
 * not there, and the process dies.  The table of sections comes last. */
static bool
cut_off(const char *path)
{
	FILE *f = fopen(path, "rb");
	Elf64_Ehdr h;
	bool cut = false;

	if (!f)
		return false;
	if (fread(&h, sizeof(h), 1, f) == 1
	    && !memcmp(h.e_ident, ELFMAG, SELFMAG)
	    && h.e_ident[EI_CLASS] == ELFCLASS64 && !fseek(f, 0, SEEK_END)) {
		uint64_t n = (uint64_t)ftell(f);
		uint64_t table = (uint64_t)h.e_shnum * h.e_shentsize;

		cut = table > n || h.e_shoff > n - table;
	}
	fclose(f);
	return cut;
}

/* Refuse what is no library at all; dlopen's words for it help nobody. */
static ckr_status
check_elf(const char *so, struct err *e)
{
	FILE *f = fopen(so, "rb");
	char head[SELFMAG] = { 0 };
	size_t n = strlen(so);
	bool onnx = n > 5 && !strcmp(so + n - 5, ".onnx"), elf = true;

	if (f) {
		elf = fread(head, SELFMAG, 1, f) == 1
		      && !memcmp(head, ELFMAG, SELFMAG);
		fclose(f);
	}
	if (elf)
		return CKR_OK;
	if (onnx)
		return err_set(e, CKR_EFORMAT, "%s: expected a compiled model, "
		               "found an ONNX file; try: ckc %s -o %.*s.so", so,
		               so,
		               (int)(n - 5), so);
	return err_set(e, CKR_EFORMAT, "%s: not a compiled model; try: ckc "
	               "MODEL.onnx -o MODEL.so", so);
}

/* dlopen takes a name without a slash for something on the library path. */
static ckr_status
load_library(struct library *l, const char *so, struct err *e)
{
	size_t n = strlen(so) + 3;
	char *path = malloc(n);
	void *sym;

	if (!path)
		return err_no_memory(e);
	snprintf(path, n, "%s%s", strchr(so, '/') ? "" : "./", so);
	l->path = path;
	if (access(path, R_OK))
		return err_set(e, CKR_EIO, "%s: cannot read: %m", so);
	CKR_TRY(check_elf(so, e));
	if (cut_off(path))
		return err_set(e, CKR_EFORMAT, "%s: the file is shorter "
		               "than its header says; it may be cut off", so);
	CKR_TRY(library_load(&l->dl, path, e));
	sym = dlsym(l->dl, "ckr_library");
	if (!sym)
		return err_set(e, CKR_EFORMAT, "%s: not a model compiled "
		               "by ckc: it has no symbol ckr_library", so);
	l->lib = sym;
	if (l->lib->abi != CKR_ABI_VERSION)
		return err_set(e, CKR_EUNSUPPORTED, "%s: compiled for "
		               "version %u of the runtime ABI, expected %d; "
		               "compile the model again", so,
		               l->lib->abi,
		               CKR_ABI_VERSION);
	return CKR_OK;
}

ckr_status
library_open(struct library *l, const char *so, struct err *e)
{
	CKR_TRY(load_library(l, so, e));
	return program_tables_are_sane(l->lib) ? CKR_OK
	       : err_set(e, CKR_EFORMAT, "%s: its tables are damaged; compile "
	                 "the model again", so);
}

void
library_close(struct library *l)
{
	free(l->path);
	if (l->dl)
		dlclose(l->dl);
}

const struct ckr_tensor *
library_find(const struct ckr_library *lib, const char *name, uint32_t *index)
{
	const struct ckr_program *p = &lib->program[0];

	for (uint32_t i = 0; i < p->ntensor; i++)
		if (tensor_is_public(&p->tensor[i])
		    && !strcmp(p->tensor[i].name, name)) {
			if (index)
				*index = i;
			return &p->tensor[i];
		}
	return NULL;
}

uint32_t
library_micro_batches(const struct ckr_library *lib)
{
	return lib && lib->grad_accum ? lib->grad_accum : 1;
}

const char *
library_optimizer(const struct ckr_library *lib)
{
	return lib && lib->optimizer ? lib->optimizer : "none";
}

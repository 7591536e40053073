/* Folders of parts: names, the index, links and what is left over. */
#include "runtime/file/parts_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/mem.h"
#include "runtime/support/hash.h"
#include "runtime/support/json.h"
#include "runtime/support/json_write.h"

enum { MAX_INDEX = 16 << 20, HASHED = 1 << 20 };

#define INDEX_NAME "complete.json"
#define FORMAT "ckc parts 1"
#define ENDING ".safetensors"

/* ---- names ---- */

bool
parts_in_folder(const char *path)
{
	size_t n = strlen(path);
	struct stat st;

	return (n && path[n - 1] == '/')
	       || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

/* "DIR/NAME"; NULL: no memory. */
static char *
path_in(const char *dir, const char *name)
{
	size_t n = strlen(dir);
	char *path;

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return asprintf(&path, "%.*s%s%s", (int)n, dir, n == 1 && *dir == '/'
	                ? "" : "/", name) < 0 ? NULL : path;
}

char *
parts_path(const char *dir, uint32_t process, uint64_t save)
{
	char name[64];

	snprintf(name, sizeof(name), "%05u-%llu" ENDING, process,
	         (unsigned long long)save);
	return path_in(dir, name);
}

/* Digits at *s, and the text after them; moves *s past both. */
static bool
skip_number(const char **s, const char *after, uint64_t *x)
{
	size_t n = strspn(*s, "0123456789");

	if (!n || n > 18 || strncmp(*s + n, after, strlen(after)))
		return false;
	*x = strtoull(*s, NULL, 10);
	*s += n + strlen(after);
	return true;
}

/* Whether it is the name of a part, or the temporary one of a part that a
 * killed process left; *temp: which. */
static bool
parse_name(const char *name, uint64_t *process, uint64_t *save, bool *temp)
{
	if (!skip_number(&name, "-", process)
	    || !skip_number(&name, ENDING, save))
		return false;
	*temp = !strncmp(name, ".ckc-tmp", strlen(".ckc-tmp"));
	return *temp || !*name;
}

ckr_status
parts_make_folder(const char *dir, struct err *e)
{
	struct stat st;

	if (!mkdir(dir, 0777) || (!stat(dir, &st) && S_ISDIR(st.st_mode)))
		return CKR_OK;
	return err_set(e, CKR_EIO, "%s: cannot make the folder: %m", dir);
}

/* ---- the index ---- */

static bool
read_hash(struct json *j, uint64_t *hash)
{
	char *text, *end;

	if (!json_string(j, &text))
		return false;
	if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return json_fail(j, "expected 16 hexadecimal digits");
	*hash = strtoull(text, &end, 16);
	return true;
}

static bool
read_mark_field(struct json *j, const char *key, void *mark)
{
	struct part_mark *m = mark;
	int64_t bytes;

	if (!strcmp(key, "header"))
		return read_hash(j, &m->header);
	if (!strcmp(key, "data"))
		return read_hash(j, &m->data);
	if (strcmp(key, "bytes"))
		return json_skip(j);
	if (!json_uint(j, &bytes))
		return false;
	m->bytes = (uint64_t)bytes;
	return true;
}

static bool
read_mark(struct json *j, void *index)
{
	struct parts_index *x = index;
	struct part_mark *v = mem_append(x->mark, x->n, sizeof(*v));

	if (!v)
		return json_fail(j, "out of memory");
	x->mark = v;
	v[x->n] = (struct part_mark){ .bytes = 0 };
	return json_object(j, read_mark_field, &v[x->n++]);
}

static bool
read_index_member(struct json *j, const char *key, void *index)
{
	struct parts_index *x = index;
	int64_t number;
	char *text;

	if (!strcmp(key, "parts"))
		return json_list(j, read_mark, x);
	if (!strcmp(key, "format"))
		return json_string(j, &text)
		       && (!strcmp(text, FORMAT)
		           || json_fail(j, "format is not '" FORMAT "'"));
	if (strcmp(key, "save") && strcmp(key, "step"))
		return json_skip(j);
	if (!json_uint(j, &number))
		return false;
	*(!strcmp(key, "save") ? &x->save : &x->step) = (uint64_t)number;
	return true;
}

static ckr_status
parse_index(const char *path, char *text, uint64_t n, struct parts_index *x,
            struct err *e)
{
	struct json j = { .text = text, .size = n };

	if (json_object(&j, read_index_member, x) && json_end(&j) && x->n
	    && x->save)
		return CKR_OK;
	return err_set(e, CKR_EFORMAT, "%s: expected an index of parts that "
	               "ckrun --save DIR/ wrote, found %s (byte %zu); to "
	               "save there, delete the file", path,
	               j.fault ? j.fault : "none", j.at);
}

bool
parts_has_index(const char *dir)
{
	char *path = path_in(dir, INDEX_NAME);
	bool there = path && (!access(path, F_OK) || errno != ENOENT);

	free(path);
	return there;
}

static ckr_status
read_index_file(const char *path, struct parts_index *x, struct err *e)
{
	uint64_t size;
	char *text;
	int fd;
	ckr_status s;

	CKR_TRY(file_open(path, &fd, &size, e));
	s = size > MAX_INDEX
	    ? err_set(e, CKR_EFORMAT, "%s: the index has %llu bytes; expected "
	              "at most %d", path, (unsigned long long)size, MAX_INDEX)
	    : file_text(fd, path, size, 0, &text, e);
	close(fd);
	if (s != CKR_OK)
		return s;
	s = parse_index(path, text, size, x, e);
	free(text);
	return s;
}

ckr_status
parts_read_index(const char *dir, struct parts_index *x, struct err *e)
{
	char *path = path_in(dir, INDEX_NAME);
	ckr_status s;

	*x = (struct parts_index){ .mark = NULL };
	if (!path)
		return err_no_memory(e);
	s = read_index_file(path, x, e);
	free(path);
	if (s != CKR_OK)
		free(x->mark);
	return s;
}

ckr_status
parts_next_save(const char *dir, uint64_t *save, struct err *e)
{
	struct parts_index x;

	*save = 1;
	if (!parts_has_index(dir))
		return CKR_OK;
	CKR_TRY(parts_read_index(dir, &x, e));
	free(x.mark);
	*save = x.save + 1;
	return CKR_OK;
}

struct index_text {
	uint64_t save, step;
	const struct part_mark *mark;
	uint32_t n;
};

static ckr_status
print_index(FILE *f, void *user)
{
	const struct index_text *x = user;
	struct json_out o = { .f = f };

	json_open(&o, NULL, '{', JSON_TABBED);
	json_text(&o, "format", FORMAT);
	json_int(&o, "save", (int64_t)x->save);
	json_int(&o, "step", (int64_t)x->step);
	json_open(&o, "parts", '[', JSON_ROWS);
	for (uint32_t i = 0; i < x->n; i++) {
		const struct part_mark *m = &x->mark[i];

		json_open(&o, NULL, '{', JSON_SPACED);
		json_int(&o, "bytes", (int64_t)m->bytes);
		json_print(&o, "header", "\"%016llx\"",
		           (unsigned long long)m->header);
		json_print(&o, "data", "\"%016llx\"",
		           (unsigned long long)m->data);
		json_close(&o);
	}
	json_close(&o);
	json_close(&o);
	putc('\n', f);
	return CKR_OK;
}

ckr_status
parts_complete(const char *dir, uint64_t save, uint64_t step,
               const struct part_mark *mark, uint32_t n, struct err *e)
{
	struct index_text x = { save, step, mark, n };
	char *path = path_in(dir, INDEX_NAME);
	struct new_file f;
	ckr_status s;

	if (!path)
		return err_no_memory(e);
	s = new_file_open(&f, path, e);
	if (s == CKR_OK)
		s = new_file_print(&f, print_index, &x, e);
	free(path);
	return s;
}

static ckr_status
hash_range(int fd, const char *path, uint64_t from, uint64_t to,
           uint64_t *hash, struct pace *pace, struct err *e)
{
	char *block = malloc(HASHED);
	ckr_status s = block ? CKR_OK : err_no_memory(e);

	*hash = HASH_START;
	for (uint64_t n; from < to && s == CKR_OK; from += n) {
		n = to - from < HASHED ? to - from : HASHED;
		s = file_read(fd, path, block, n, from, e);
		*hash = mem_hash(*hash, block, n);
		pace_rest(pace, (double)n);
	}
	free(block);
	return s;
}

ckr_status
parts_hash(int fd, const char *path, bool data, struct part_mark *m,
           struct pace *pace, struct err *e)
{
	unsigned char length[8] = { 0 };
	struct stat st;
	uint64_t begin;
	size_t got;

	*m = (struct part_mark){ .bytes = 0 };
	if (fstat(fd, &st))
		return err_set(e, CKR_EIO, "%s: cannot read: %m", path);
	m->bytes = (uint64_t)st.st_size;
	CKR_TRY(file_some(fd, path, length, 8, 0, &got, e));
	begin = st_head_size(length);
	begin = begin < m->bytes - got ? begin + got : m->bytes;
	CKR_TRY(hash_range(fd, path, 0, begin, &m->header, NULL, e));
	return data ? hash_range(fd, path, begin, m->bytes, &m->data, pace, e)
	       : CKR_OK;
}

/* ---- the files of a folder ---- */

typedef void part_fn(const char *path, const char *name, uint64_t save,
                     bool temp, void *user);

/* Parts of this process, or all of them. */
static void
for_parts(const char *dir, uint32_t process, bool all, part_fn *each,
          void *user)
{
	DIR *d = opendir(dir);
	uint64_t of, save;
	bool temp;

	for (struct dirent *x; d && (x = readdir(d));) {
		char *path;

		if (!parse_name(x->d_name, &of, &save, &temp)
		    || (!all && of != process))
			continue;
		path = path_in(dir, x->d_name);
		if (path)
			each(path, x->d_name, save, temp, user);
		free(path);
	}
	if (d)
		closedir(d);
}

static void
delete_other(const char *path, const char *name, uint64_t save, bool temp,
             void *kept)
{
	(void)name;
	(void)temp;
	if (save != *(uint64_t *)kept)
		unlink(path);
}

void
parts_clean(const char *dir, uint64_t save, uint32_t process)
{
	for_parts(dir, process, !process, delete_other, &save);
}

struct link_to {
	const char *dir;
	struct err *e;
	ckr_status status;
};

static void
link_file(struct link_to *to, const char *path, const char *name)
{
	char *link_path = path_in(to->dir, name);

	if (!link_path) {
		to->status = err_no_memory(to->e);
		return;
	}
	unlink(link_path);
	if (link(path, link_path))
		to->status = err_set(to->e, CKR_EIO, "%s: cannot write: %m",
		                     link_path);
	free(link_path);
}

static void
link_part(const char *path, const char *name, uint64_t save, bool temp,
          void *user)
{
	struct link_to *to = user;

	(void)save;
	if (!temp && to->status == CKR_OK)
		link_file(to, path, name);
}

ckr_status
parts_link(const char *from, const char *to, uint32_t process, struct err *e)
{
	struct link_to l = { to, e, parts_make_folder(to, e) };

	if (l.status == CKR_OK)
		for_parts(from, process, false, link_part, &l);
	return l.status;
}

ckr_status
parts_link_complete(const char *from, const char *to, struct err *e)
{
	struct link_to l = { to, e, CKR_OK };
	char *path = path_in(from, INDEX_NAME);

	if (!path)
		return err_no_memory(e);
	link_file(&l, path, INDEX_NAME);
	free(path);
	return l.status;
}

void
parts_remove_complete(const char *dir)
{
	char *path = path_in(dir, INDEX_NAME);

	if (path)
		unlink(path);
	free(path);
}

void
parts_remove(const char *dir, uint32_t process)
{
	parts_clean(dir, 0, process);
	rmdir(dir);
}

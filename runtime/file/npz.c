/* .npz files: a zip archive of .npy files, stored (numpy.savez) or deflated
 * (savez_compressed).  Only the central directory is trusted.  Sizes are
 * checked against the file, and contents against checksums: when the file is
 * opened, or, if deflated, when they are inflated. */
#include <stdlib.h>
#include <string.h>

#include "runtime/file/format.h"
#include "runtime/support/number.h"

enum { MAX_MEMBERS = 1 << 16, STORED = 0, DEFLATED = 8 };

struct member {
	const unsigned char *name;
	size_t name_len;
	unsigned method, flags;
	uint32_t crc;
	uint64_t size, stored, at;      /* at: of the local header */
};

/* Sizes of 0xffffffff stand in the zip64 extra field, in this order. */
static bool
read_zip64(struct member *m, const unsigned char *x, size_t n)
{
	uint64_t *field[3] = { &m->size, &m->stored, &m->at };

	while (n >= 4) {
		size_t len = load_le(x + 2, 2);

		if (len > n - 4)
			return false;
		if (load_le(x, 2) == 1) {
			const unsigned char *p = x + 4;

			for (int i = 0; i < 3; i++) {
				if (*field[i] != UINT32_MAX)
					continue;
				if ((size_t)(x + 4 + len - p) < 8)
					return false;
				*field[i] = load_le(p, 8);
				p += 8;
			}
			return true;
		}
		x += 4 + len;
		n -= 4 + len;
	}
	return m->size != UINT32_MAX && m->stored != UINT32_MAX
	       && m->at != UINT32_MAX;
}

/* Where the central directory is: number of entries, size, position. */
static ckr_status
find_directory(struct array_file *f, uint64_t dir[3], struct err *e)
{
	unsigned char tail[22 + 65535], x[56];
	size_t n = f->size < sizeof(tail) ? (size_t)f->size : sizeof(tail), i;
	uint64_t at;

	CKR_TRY(file_read(f->fd, f->path, tail, n, f->size - n, e));
	if (n < 22)
		goto bad;
	for (i = n - 22;; i--) {
		if (!memcmp(tail + i, "PK\5\6", 4))
			break;
		if (!i)
			goto bad;
	}
	dir[0] = load_le(tail + i + 10, 2);
	dir[1] = load_le(tail + i + 12, 4);
	dir[2] = load_le(tail + i + 16, 4);
	if (dir[0] != 0xffff && dir[1] != UINT32_MAX && dir[2] != UINT32_MAX)
		return CKR_OK;
	if (i < 20 || memcmp(tail + i - 20, "PK\6\7", 4))
		goto bad;
	at = load_le(tail + i - 12, 8);
	if (f->size < 56 || at > f->size - 56)
		goto bad;
	CKR_TRY(file_read(f->fd, f->path, x, 56, at, e));
	if (memcmp(x, "PK\6\6", 4))
		goto bad;
	dir[0] = load_le(x + 32, 8);
	dir[1] = load_le(x + 40, 8);
	dir[2] = load_le(x + 48, 8);
	return CKR_OK;
bad:
	return err_set(e, CKR_EFORMAT, "%s: not a valid zip archive; it may be "
	               "cut off", f->path);
}

/* CRC-32 (ISO 3309) of bytes at..at+size of f, eight bytes at a time: table k
 * is for bytes that k more follow. */
static ckr_status
crc_of(const struct array_file *f, uint64_t at, uint64_t size, uint32_t *crc,
       struct err *e)
{
	uint32_t table[8][256], x = UINT32_MAX;
	unsigned char buf[16384];

	for (uint32_t i = 0; i < 256; i++) {
		table[0][i] = i;
		for (int k = 0; k < 8; k++)
			table[0][i] = table[0][i] >> 1
				^ (table[0][i] & 1 ? 0xedb88320 : 0);
	}
	for (int k = 1; k < 8; k++)
		for (int i = 0; i < 256; i++)
			table[k][i] = table[k - 1][i] >> 8
				^ table[0][table[k - 1][i] & 255];
	for (uint64_t n; size > 0; at += n, size -= n) {
		size_t i = 0;

		n = size < sizeof(buf) ? size : sizeof(buf);
		CKR_TRY(file_read(f->fd, f->path, buf, n, at, e));
		for (; i + 8 <= n; i += 8) {
			uint32_t low = x ^ (uint32_t)load_le(buf + i, 4);

			x = 0;
			for (int k = 0; k < 4; k++)
				x ^= table[7 - k][low >> 8 * k & 255]
					^ table[3 - k][buf[i + 4 + k]];
		}
		for (; i < n; i++)
			x = x >> 8 ^ table[0][(x ^ buf[i]) & 255];
	}
	*crc = ~x;
	return CKR_OK;
}

/* The name of the array: what the member is called, without its suffix. */
static ckr_status
set_array_name(const struct array_file *f, const struct member *m,
               struct array *a, char **name, struct err *e)
{
	size_t n = m->name_len;

	memcpy(*name, m->name, n);
	if (n > 4 && !memcmp(*name + n - 4, ".npy", 4))
		n -= 4;
	(*name)[n] = '\0';
	a->name = *name;
	*name += n + 1;
	if (strlen(a->name) != n)
		return err_set(e, CKR_EFORMAT, "%s: the name of an array "
		               "contains a NUL byte", f->path);
	return CKR_OK;
}

static ckr_status
check_method(const struct array_file *f, const struct member *m,
             const char *name, struct err *e)
{
	char how[40];

	if (!(m->flags & 1) && (m->method == STORED
	                        || (m->method == DEFLATED && packed_can())))
		return CKR_OK;
	if (m->flags & 1)
		snprintf(how, sizeof(how), "encrypted");
	else if (m->method == DEFLATED)
		snprintf(how, sizeof(how), "compressed, and zlib is not built "
		         "in");
	else
		snprintf(how, sizeof(how), "compressed by method %u",
		         m->method);
	return err_set(e, CKR_EUNSUPPORTED, "%s: array '%s' is %s; save it "
	               "with numpy.savez: np.savez('new.npz', **np.load('%s'))",
	               f->path, name, how, f->path);
}

/* Where the member's contents begin, all of which lie in the file. */
static ckr_status
find_contents(const struct array_file *f, const struct member *m,
              const char *name, uint64_t *at, struct err *e)
{
	unsigned char local[30];

	if (f->size < 30 || m->at > f->size - 30)
		goto bad;
	CKR_TRY(file_read(f->fd, f->path, local, 30, m->at, e));
	if (memcmp(local, "PK\3\4", 4))
		goto bad;
	*at = m->at + 30 + load_le(local + 26, 2) + load_le(local + 28, 2);
	if (*at > f->size || m->stored > f->size - *at
	    || (m->method == STORED && m->size != m->stored))
		goto bad;
	return CKR_OK;
bad:
	return err_set(e, CKR_EFORMAT, "%s: array '%s' lies outside the file; "
	               "it may be cut off", f->path, name);
}

/* Fill in the array that a member holds; its name is put at *name. */
static ckr_status
read_npz_member(struct array_file *f, const struct member *m, struct array *a,
                char **name, struct err *e)
{
	char text[NAME_TEXT];
	uint32_t crc;
	uint64_t at = 0;

	CKR_TRY(set_array_name(f, m, a, name, e));
	err_name(text, sizeof(text), a->name);
	CKR_TRY(check_method(f, m, text, e));
	CKR_TRY(find_contents(f, m, text, &at, e));
	if (m->method == DEFLATED) {
		a->packed = &f->packed[f->npacked++];
		*a->packed = (struct packed){ .name = a->name, .at = at,
			.stored = m->stored, .size = m->size, .crc = m->crc,
			.fd = -1 };
		return npy_read(f, a, m->size, e);
	}
	a->at = at;
	CKR_TRY(npy_read(f, a, m->size, e));
	CKR_TRY(crc_of(f, at, m->size, &crc, e));
	if (crc != m->crc)
		return err_set(e, CKR_EFORMAT, "%s: array '%s' is damaged: its "
		               "checksum is %08x, expected %08x", f->path, text,
		               crc, m->crc);
	return CKR_OK;
}

static ckr_status
read_members(struct array_file *f, const unsigned char *p, size_t left,
             uint64_t count, struct err *e)
{
	char *name = f->text;

	for (uint64_t i = 0; i < count; i++) {
		struct member m;
		size_t nx, nc, all;

		if (left < 46 || memcmp(p, "PK\1\2", 4))
			goto bad;
		m = (struct member){
			.flags = (unsigned)load_le(p + 8, 2),
			.method = (unsigned)load_le(p + 10, 2),
			.crc = (uint32_t)load_le(p + 16, 4),
			.stored = load_le(p + 20, 4),
			.size = load_le(p + 24, 4),
			.name_len = load_le(p + 28, 2),
			.at = load_le(p + 42, 4), .name = p + 46 };
		nx = load_le(p + 30, 2);
		nc = load_le(p + 32, 2);
		all = 46 + m.name_len + nx + nc;
		if (all > left || !read_zip64(&m, p + 46 + m.name_len, nx))
			goto bad;
		CKR_TRY(read_npz_member(f, &m, &f->v[f->n], &name, e));
		f->n++;
		p += all;
		left -= all;
	}
	return CKR_OK;
bad:
	return err_set(e, CKR_EFORMAT, "%s: the zip directory cannot be read",
	               f->path);
}

ckr_status
npz_read_directory(struct array_file *f, struct err *e)
{
	uint64_t dir[3];
	unsigned char *p;
	ckr_status s;

	CKR_TRY(find_directory(f, dir, e));
	if (dir[0] > MAX_MEMBERS || dir[2] > f->size
	    || dir[1] > f->size - dir[2] || dir[1] / 46 < dir[0])
		return err_set(e, CKR_EFORMAT, "%s: the zip directory cannot "
		               "be read", f->path);
	CKR_TRY(array_alloc(f, dir[0], e));
	f->packed = calloc(dir[0] + 1, sizeof(*f->packed));
	/* names lie in the directory, so its size bounds theirs */
	f->text = malloc(dir[1] + 1);
	p = malloc(dir[1] + 1);
	if (!f->packed || !f->text || !p) {
		free(p);
		return err_no_memory(e);
	}
	s = file_read(f->fd, f->path, p, dir[1], dir[2], e);
	if (s == CKR_OK)
		s = read_members(f, p, dir[1], dir[0], e);
	free(p);
	return s;
}

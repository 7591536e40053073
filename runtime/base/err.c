/* Error messages of libckr and ckrun. */
#include "runtime/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

ckr_status
err_set(struct err *e, ckr_status status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	e->known = e->mute = false;
	return status;
}

ckr_status
err_no_memory(struct err *e)
{
	return err_set(e, CKR_ENOMEM, "out of memory");
}

void
err_append(char *buf, size_t size, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + n, size - n, fmt, ap);
	va_end(ap);
}

const char *
err_name(char *buf, size_t size, const char *name)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (const char *s = name; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (n + 5 > size) {
			if (n >= 4)
				memcpy(buf + n - 4, "...", 3), n--;
			break;
		}
		if (c >= 32 && c < 127) {
			buf[n++] = (char)c;
			continue;
		}
		buf[n++] = '\\';
		buf[n++] = 'x';
		buf[n++] = hex[c >> 4];
		buf[n++] = hex[c & 15];
	}
	buf[n] = '\0';
	return buf;
}

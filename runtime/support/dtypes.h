/* Element types, one row each.
 *
 * Include with DT(id, text, nbytes, ctype, onnx, st, npy, cls) defined; the
 * rows undefine nothing, the includer does.
 *
 * text    name in the text form and in --json
 * nbytes  bytes of one element
 * ctype   C type in generated code (16-bit floats are bit patterns)
 * onnx    TensorProto.DataType; -1: none
 * st      safetensors dtype
 * npy     .npy's descr without byte order; NULL: none
 * cls     f float, i signed integer, u unsigned integer, b boolean,
 *         q block of quantised weights
 *
 * ORDER DT: ckc's DT_* and the CKR_* of runtime/ckr_abi.h are numbered so, from
 * 1.
 */
DT(F32,  "f32",  4, "float",    1,  "F32", "f4", 'f')
DT(F64,  "f64",  8, "double",   11, "F64", "f8", 'f')
DT(F16,  "f16",  2, "uint16_t", 10, "F16", "f2", 'f')
DT(BF16, "bf16", 2, "uint16_t", 16, "BF16", NULL, 'f')
DT(I64,  "i64",  8, "int64_t",  7,  "I64", "i8", 'i')
DT(I32,  "i32",  4, "int32_t",  6,  "I32", "i4", 'i')
DT(I16,  "i16",  2, "int16_t",  5,  "I16", "i2", 'i')
DT(I8,   "i8",   1, "int8_t",   3,  "I8", "i1", 'i')
DT(U64,  "u64",  8, "uint64_t", 13, "U64", "u8", 'u')
DT(U32,  "u32",  4, "uint32_t", 12, "U32", "u4", 'u')
DT(U16,  "u16",  2, "uint16_t", 4,  "U16", "u2", 'u')
DT(U8,   "u8",   1, "uint8_t",  2,  "U8", "u1", 'u')
DT(BOOL, "bool", 1, "uint8_t",  9,  "BOOL", "b1", 'b')
/* An element is a block of 64 weights along the last dim.  Files hold its
 * bytes. */
DT(INT8X64, "int8x64", 68, "struct block_int8", -1, "U8", NULL, 'q')
DT(NF4X64,  "nf4x64",  36, "struct block_nf4", -1, "U8", NULL, 'q')

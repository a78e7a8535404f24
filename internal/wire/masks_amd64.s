#include "textflag.h"

// func maskVectors(masks *uint64, text *byte, n int)
//
// Each 64 bytes are two vectors of 32, which are compared three times; each byte becomes a
// bit. A byte is below 0x20 if the minimum of it and 0x1f is the byte itself.
//
// Every vector instruction is of AVX and begins with V. One SSE instruction, such as MOVQ,
// among them stalls some processors: it cost 200 ns a call.
TEXT ·maskVectors(SB), NOSPLIT, $0-24
	MOVQ masks+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ n+16(FP), CX

	MOVL         $0x22, AX
	VMOVQ        AX, X0
	VPBROADCASTB X0, Y0 // quotes
	MOVL         $0x5c, AX
	VMOVQ        AX, X1
	VPBROADCASTB X1, Y1 // backslashes
	MOVL         $0x1f, AX
	VMOVQ        AX, X2
	VPBROADCASTB X2, Y2

next:
	VMOVDQU (SI), Y3
	VMOVDQU 32(SI), Y4

	VPCMPEQB  Y0, Y3, Y5
	VPCMPEQB  Y1, Y3, Y6
	VPOR      Y6, Y5, Y5
	VPMINUB   Y2, Y3, Y6
	VPCMPEQB  Y3, Y6, Y6
	VPOR      Y6, Y5, Y5
	VPMOVMSKB Y5, AX

	VPCMPEQB  Y0, Y4, Y7
	VPCMPEQB  Y1, Y4, Y8
	VPOR      Y8, Y7, Y7
	VPMINUB   Y2, Y4, Y8
	VPCMPEQB  Y4, Y8, Y8
	VPOR      Y8, Y7, Y7
	VPMOVMSKB Y7, DX

	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, (DI)

	ADDQ $64, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  next

	VZEROUPPER
	RET

# Called in the region's place where MARKERS is set: 1 for gem5, 2 for Sniper. The region's stack stays where it is: the return
# address waits in a register that the region preserves.

.ifdef MARKERS
.if MARKERS == 1
# gem5's pseudo-instructions m5_work_begin and m5_work_end: 0f 04 and a number of 16 bits; work 0 of thread 0 in rdi and rsi.
.macro MARK number
movq %rdi, %r14
xorl %edi, %edi
xorl %esi, %esi
.byte 0x0f, 0x04
.word \number
movq %r14, %rdi
.endm
.set BEGIN, 0x5a
.set END, 0x5b
.else
# Sniper's SimRoiStart and SimRoiEnd: the command in rax, then an exchange that does nothing on a processor.
.macro MARK number
movl $\number, %eax
xchgw %bx, %bx
.endm
.set BEGIN, 1
.set END, 2
.endif

.text
.p2align 4
.globl cere_marked_invoke
.type cere_marked_invoke,@function
cere_marked_invoke:
.cfi_startproc
popq %r13
.cfi_def_cfa_offset 0
.cfi_register %rip, %r13
subl $1, runs_to_skip(%rip)
jns 1f
MARK BEGIN
call @INVOKE@
MARK END
jmp *%r13
1:
call @INVOKE@
jmp *%r13
.cfi_endproc
.size cere_marked_invoke, .-cere_marked_invoke

.data
.balign 4
runs_to_skip: .long SKIP
.endif
.section .note.GNU-stack,"",@progbits

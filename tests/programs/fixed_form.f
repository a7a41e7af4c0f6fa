C     Fixed-form Fortran 77: COMMON in two program units, EQUIVALENCE, statement labels, DATA and SAVE.
!@ codelets: 3
!@ levels: -O0 ; -O2 -g ; -O3
!@ flags: -O0 ; -O3 -march=native
!@ under: -O3 -march=native ~ relax@* ~ tolerance ~ of a double's value
      PROGRAM MAIN
      INTEGER N
      PARAMETER (N=200)
      DOUBLE PRECISION A(N), B(N), S
      COMMON /FIELD/ A, B
      INTEGER I
      S = 0.0D0
      DO 10 I = 1, N
        A(I) = DSIN(DBLE(I))
        B(I) = 1.0D0/DBLE(I)
   10 CONTINUE
      CALL RELAX(20)
      CALL RELAX(5)
      DO 20 I = 1, N
        IF (A(I) .GT. 1.0D6) GO TO 30
        S = S + A(I)*B(I)
   20 CONTINUE
   30 WRITE (*, '(E24.16)') S
      END

      SUBROUTINE RELAX(K)
      INTEGER N, K
      PARAMETER (N=200)
      DOUBLE PRECISION A(N), B(N), W(2*N), T
      COMMON /FIELD/ A, B
      INTEGER I, J, CALLS
      SAVE CALLS
      DATA CALLS /0/
      DOUBLE PRECISION X(2), Y
      EQUIVALENCE (X(1), Y)
      CALLS = CALLS + 1
      DO 50 J = 1, K
        DO 40 I = 2, N - 1
          T = 0.25D0*(A(I-1) + 2.0D0*A(I) + A(I+1))
          W(I) = T + CALLS*1.0D-6
          Y = T
          A(I) = X(1) + B(I)*1.0D-3
   40   CONTINUE
   50 CONTINUE
      END

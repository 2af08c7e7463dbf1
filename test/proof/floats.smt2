; The floating point of lib/core/validity.c, for z3: IEEE 754 doubles. Frama-C checks the same
; functions by real numbers (arithmetic.h). Each (echo) names a goal, and what follows searches for
; a violation; unsat: there is none. arithmetic.sh checks that these are still the lines of the
; functions:
;
; uint64_t validity_drift(uint64_t ttl, double drift) {
;     double share = (double)ttl * drift;
;     if (share >= (double)(NANOS_NEVER / 2)) {
;         return NANOS_NEVER;
;     }
;     uint64_t rounded_up = (uint64_t)share + ((double)(uint64_t)share < share ? 1 : 0);
;     return nanos_add(rounded_up, FIXED_DRIFT);
; }
; uint64_t validity_ttl(uint64_t validity, double drift) {
;     double ttl = (double)nanos_add(validity, FIXED_DRIFT) / (1 - drift);
;     return ttl >= (double)(NANOS_NEVER / 2) ? NANOS_NEVER : nanos_add((uint64_t)ttl, NANOS_PER_MS);
; }

(define-sort Int64 () (_ BitVec 64))
(define-fun to_double ((n Int64)) Float64 ((_ to_fp_unsigned 11 53) RNE n))
(define-fun to_int ((x Float64)) Int64 ((_ fp.to_ubv 64) RTZ x))
(define-const zero Float64 (to_double #x0000000000000000))
(define-const half Float64 ((_ to_fp 11 53) RNE 0.5))
(define-const one Float64 (to_double #x0000000000000001))
(define-const two Float64 (to_double #x0000000000000002))
(define-const whole Float64 (to_double #x0020000000000000))
(define-const limit Float64 (to_double #x7fffffffffffffff))

(echo "NANOS_NEVER / 2 is 2^63 as a double")
(push)
(assert (not (= limit ((_ to_fp 11 53) RNE 9223372036854775808.0))))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

; ---- for all doubles x that a TTL can be converted to, and drifts from 0 to 0.5 ----

(declare-const x Float64)
(declare-const drift Float64)
(push)
(assert (fp.geq x zero))
(assert (fp.leq x (to_double #xffffffffffffffff)))
(assert (fp.geq drift zero))
(assert (fp.leq drift half))

(echo "a share is a number, and not below 0")
(push)
(assert (not (fp.geq (fp.mul RNE x drift) zero)))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

(echo "the divisor of validity_ttl is from 0.5 to 1")
(push)
(assert (not (and (fp.geq (fp.sub RNE one drift) half) (fp.leq (fp.sub RNE one drift) one))))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)
(pop)

; ---- for all TTLs and shares ----

; A share is any number up to half of the TTL as a double, a quotient any up to its double: z3 does
; not finish products of two unknown numbers. That a product is in these bounds is IEEE's: rounding
; keeps the order of numbers, and half of a double and its double are doubles.
(declare-const ttl Int64)
(declare-const share Float64)
(declare-const quotient Float64)
(assert (fp.geq share zero))
(assert (fp.leq share (fp.mul RNE (to_double ttl) half)))
(assert (fp.geq quotient (to_double ttl)))
(assert (fp.leq quotient (fp.mul RNE (to_double ttl) two)))
(define-const rounded_up Int64
  (bvadd (to_int share) (ite (fp.lt (to_double (to_int share)) share) #x0000000000000001
                                                                     #x0000000000000000)))

(echo "a share below the limit is below 2^63 when it is converted")
(push)
(assert (fp.lt share limit))
(assert (not (bvult (to_int share) #x8000000000000000)))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

(echo "a quotient below the limit is below 2^63 when it is converted")
(push)
(assert (fp.lt quotient limit))
(assert (not (bvult (to_int quotient) #x8000000000000000)))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

(echo "rounding up is never down, below 2^53 ns, which is 104 days")
(push)
(assert (fp.lt share whole))
(assert (not (fp.geq (to_double rounded_up) share)))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

(echo "a share from 2^53 on is a whole number, and converted as it is")
(push)
(assert (fp.lt share limit))
(assert (fp.geq share whole))
(assert (not (fp.eq (to_double (to_int share)) share)))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

(echo "without rounding up, a share is converted to no more than it is")
(push)
(assert (fp.lt share limit))
(assert (not (fp.leq (to_double (to_int share)) share)))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

(echo "the drift, without the 2 ms, is not more than the TTL")
(push)
(assert (fp.lt share limit))
(assert (bvugt rounded_up ttl))
(check-sat-using (then simplify fpa2bv simplify propagate-values bit-blast sat))
(pop)

; What is asked for above is possible at all.
(echo "sat: of 4 ns a share of 1.5 ns is rounded up to 2 ns")
(push)
(assert (= ttl #x0000000000000004))
(assert (= share ((_ to_fp 11 53) RNE 1.5)))
(assert (= quotient ((_ to_fp 11 53) RNE 5.5)))
(assert (= rounded_up #x0000000000000002))
(check-sat)
(pop)

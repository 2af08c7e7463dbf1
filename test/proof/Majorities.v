(* Majorities of one list meet (core/quorum.h); exclusion in these terms; and changes of a list (T4). *)
Require Import ZArith List Bool Lia Arith.
Require Import Model Invariant Exclusion.
Import ListNotations.
Open Scope nat_scope.

(* A client counts by one list or, while the list is changed, by two: a quorum of each. *)
Definition of_lists (lists : nat -> list (list node)) m q := forallb (fun l => is_quorum l q) (lists m).

Theorem quorums_meet lists m m' l : In l (lists m) -> In l (lists m') -> meet (of_lists lists) m m'.
Proof.
  intros I I' q q' Q Q'. unfold of_lists in *; rewrite forallb_forall in Q, Q'.
  exact (majorities_meet l q q' (Q l I) (Q' l I')).
Qed.

(* A change in stages: at stage 2i a client counts by list i, at stage 2i + 1 by lists i and i + 1. *)
Definition by_stage (list_of : nat -> list node) k :=
  if Nat.even k then [list_of (Nat.div2 k)] else [list_of (Nat.div2 k); list_of (S (Nat.div2 k))].

Lemma next_stage_shares list_of k : exists l, In l (by_stage list_of k) /\ In l (by_stage list_of (S k)).
Proof.
  unfold by_stage. rewrite Nat.even_succ, <- Nat.negb_even. destruct (Nat.even k) eqn:E; cbn [negb].
  - exists (list_of (Nat.div2 k)). apply Nat.even_spec in E as [i ->].
    replace (Nat.div2 (S (2 * i))) with i by (symmetry; apply Nat.div2_succ_double).
    rewrite Nat.div2_double; cbn; auto.
  - exists (list_of (S (Nat.div2 k))).
    assert (O : Nat.Odd k) by (apply Nat.odd_spec; rewrite <- Nat.negb_even, E; auto).
    destruct O as [i ->]. replace (2 * i + 1) with (S (2 * i)) by lia.
    rewrite Nat.div2_succ_double. replace (S (S (2 * i))) with (2 * S i) by lia.
    rewrite Nat.div2_double; cbn; auto.
Qed.

Lemma near_stages_share list_of k k' :
  k <= S k' -> k' <= S k -> exists l, In l (by_stage list_of k) /\ In l (by_stage list_of k').
Proof.
  intros H H'. destruct (Nat.eq_dec k k') as [-> | N].
  - exists (list_of (Nat.div2 k')); unfold by_stage; destruct (Nat.even k'); cbn; auto.
  - destruct (Nat.eq_dec k (S k')) as [-> | M].
    + destruct (next_stage_shares list_of k') as (l & I & J); eauto.
    + replace k' with (S k) by lia; apply next_stage_shares.
Qed.

Open Scope Z_scope.
Section Redlock.
Variables (nodes : list node) (clients : list client) (slow fast grain max_ttl : Z).
Hypothesis clocks : 0 < slow <= fast.
Hypothesis grains : 0 <= grain.
Hypothesis ttls : 0 <= max_ttl.

(* Clients exclude each other as long as they count by a list in common. *)
Theorem redlock lists s0 xs s t t' m m' l :
  is_start s0 ->
  run strict nodes clients (of_lists lists) slow fast grain max_ttl s0 xs = Some s ->
  valid s t m -> valid s t' m' ->
  In l (lists m) -> In l (lists m') ->
  t = t'.
Proof.
  intros S H V V' I J.
  exact (exclusion nodes clients (of_lists lists) slow fast grain max_ttl clocks grains ttls s0 xs s t t' m m'
    S H V V' (quorums_meet lists m m' l I J)).
Qed.

(* Clients at most one stage apart exclude each other. *)
Theorem joint_change list_of s0 xs s t t' k k' :
  is_start s0 ->
  run strict nodes clients (of_lists (by_stage list_of)) slow fast grain max_ttl s0 xs = Some s ->
  valid s t k -> valid s t' k' ->
  (k <= S k')%nat -> (k' <= S k)%nat ->
  t = t'.
Proof.
  intros S R V V' K K'. destruct (near_stages_share list_of k k' K K') as (l & I & J).
  exact (redlock (by_stage list_of) s0 xs s t t' k k' l S R V V' I J).
Qed.
End Redlock.

(* What the models share: nodes, a function that is changed in one place, runs, and majorities. *)
Require Import List Bool Arith Lia.
Import ListNotations.

Definition node := nat.

Definition mem {A} (eqb : A -> A -> bool) (x : A) (l : list A) := existsb (eqb x) l.
Definition upd {A} (f : nat -> A) (n : nat) (x : A) m := if Nat.eqb m n then x else f m.

Lemma mem_in {A} (eqb : A -> A -> bool) (H : forall x y, eqb x y = true -> x = y) x l :
  mem eqb x l = true -> In x l.
Proof. unfold mem; rewrite existsb_exists; intros (y & I & E); apply H in E; subst; auto. Qed.
Lemma mem_nat n l : mem Nat.eqb n l = true -> In n l.
Proof. apply mem_in; intros; now apply Nat.eqb_eq. Qed.

(* ---- runs ---- *)

(* Takes actions one after the other; None if one of them is not possible or not allowed. *)
Fixpoint run {S A} (step : S -> A -> option S) (s : S) (xs : list A) : option S :=
  match xs with
  | [] => Some s
  | x :: xs => match step s x with Some s' => run step s' xs | None => None end
  end.

(* What each step keeps, a run keeps. *)
Lemma run_kept {S A} (step : S -> A -> option S) (P : S -> Prop) :
  (forall s x s', P s -> step s x = Some s' -> P s') ->
  forall xs s s', P s -> run step s xs = Some s' -> P s'.
Proof.
  intros K; induction xs as [|x xs IH]; cbn; intros s s' I H; [congruence|].
  destruct (step s x) eqn:E; [|discriminate]; eauto.
Qed.

(* ---- majorities, as lib/core/quorum.h counts them ---- *)

Definition count (q l : list node) := length (filter (fun n => mem Nat.eqb n q) l).
Definition is_quorum (l q : list node) := Nat.leb (length l / 2 + 1) (count q l).

Lemma overlap p q l : length l < count p l + count q l -> exists n, In n p /\ In n q.
Proof.
  induction l as [|n l IH]; unfold count in *; cbn; [lia|].
  destruct (mem Nat.eqb n p) eqn:P, (mem Nat.eqb n q) eqn:Q; cbn; intros H; try (apply IH; lia).
  exists n; split; now apply mem_nat.
Qed.

Lemma majorities_meet l p q :
  is_quorum l p = true -> is_quorum l q = true -> exists n, In n p /\ In n q.
Proof.
  unfold is_quorum; intros P Q; apply Nat.leb_le in P, Q; apply (overlap p q l).
  pose proof (Nat.div_mod (length l) 2 ltac:(lia)).
  pose proof (Nat.mod_upper_bound (length l) 2 ltac:(lia)). lia.
Qed.

(*
 * Handover inside a client (T7): the token stays at the nodes, and passes from one lock of the
 * process to the next one. Then exclusion is about locks, not only about tokens.
 *)
Require Import ZArith List Bool Lia.
Require Import Model Invariant Exclusion Majorities.
Import ListNotations.
Open Scope Z_scope.

(* A lock of the client; [has_it] says which one has the token, if any. *)
Definition lock := nat.
Record process := Process { world : state; has_it : token -> option lock }.

Inductive event :=
| Act (x : action)               (* as before *)
| Adopt (t : token) (l : lock)   (* a lock begins with a token that no lock has *)
| Give (t : token) (l l' : lock) (* a silent handover *)
| Leave (t : token) (l : lock).  (* the lock ends *)

Definition set_lock (f : token -> option lock) t x u := if token_eqb u t then x else f u.

Section Handover.
Variables (nodes : list node) (clients : list client) (lists : nat -> list (list node)).
Variables (slow fast grain max_ttl : Z).
Hypothesis clocks : 0 < slow <= fast.
Hypothesis grains : 0 <= grain.
Hypothesis ttls : 0 <= max_ttl.
Notation step := (step strict nodes clients (of_lists lists) slow fast grain max_ttl).

Definition is_lock (x : option lock) l := match x with Some l' => Nat.eqb l' l | None => false end.

Definition pstep (p : process) (e : event) : option process :=
  match e with
  | Act x => match step (world p) x with Some s => Some (Process s (has_it p)) | None => None end
  | Adopt t l => match has_it p t with
                 | None => Some (Process (world p) (set_lock (has_it p) t (Some l)))
                 | Some _ => None end
  | Give t l l' => if is_lock (has_it p t) l
                   then Some (Process (world p) (set_lock (has_it p) t (Some l'))) else None
  | Leave t l => if is_lock (has_it p t) l
                 then Some (Process (world p) (set_lock (has_it p) t None)) else None
  end.

Definition pruns := Common.run pstep.

Definition lock_holds p t l m := has_it p t = Some l /\ valid (world p) t m.

(* Without its handovers, the run of a process is a run of the model. *)
Definition acts es := flat_map (fun e => match e with Act x => [x] | _ => [] end) es.
Lemma pruns_run es : forall p p', pruns p es = Some p' ->
  run strict nodes clients (of_lists lists) slow fast grain max_ttl (world p) (acts es) = Some (world p').
Proof.
  induction es as [|e es IH]; cbn; intros p p' H; [congruence|].
  destruct (pstep p e) as [q|] eqn:E; [|discriminate]. specialize (IH q p' H).
  destruct e; unfold pstep in E.
  - destruct (Model.step _ _ _ _ _ _ _ _ (world p) x) eqn:F; [|discriminate]. inversion E; subst; cbn in *.
    unfold acts in IH; rewrite F; exact IH.
  - destruct (has_it p t); inversion E; subst; exact IH.
  - destruct (is_lock _ _); inversion E; subst; exact IH.
  - destruct (is_lock _ _); inversion E; subst; exact IH.
Qed.

(* Of the locks of all processes, one holds at a time. *)
Theorem one_lock p0 es p t l m t' l' m' x :
  is_start (world p0) -> pruns p0 es = Some p ->
  lock_holds p t l m -> lock_holds p t' l' m' ->
  In x (lists m) -> In x (lists m') ->
  t = t' /\ l = l'.
Proof.
  intros S H (L & V) (L' & V') I I'.
  assert (E : t = t') by exact (redlock nodes clients slow fast grain max_ttl clocks grains ttls lists (world p0)
    (acts es) (world p) t t' m m' x S (pruns_run es p0 p H) V V' I I').
  subst t'; split; congruence.
Qed.
End Handover.

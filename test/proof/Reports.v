(* A yes is reported only while the token is valid (T1b); a lock is one unbroken interval (T1c). *)
Require Import ZArith List Bool Lia.
Require Import Model Invariant.
Import ListNotations.
Open Scope Z_scope.

(* What a step that was allowed has led to: H says that it led to some state. *)
Ltac outcome H := cbn -[token_eqb within_drift] in H;
  repeat match type of H with
    | (if ?b then _ else _) = _ => destruct b eqn:?; try discriminate H
    | match ?y with Asked _ _ _ => _ | Pushed _ => _ end = _ => destruct y eqn:?; try discriminate H
    end; inversion H; subst; clear H.

Section Reports.
Variables (nodes : list node) (clients : list client).
Variable quorum : nat -> list node -> bool.
Variables (slow fast grain max_ttl : Z).
Notation step := (step strict nodes clients quorum slow fast grain max_ttl).
Notation run := (run strict nodes clients quorum slow fast grain max_ttl).

(* The token has validity, by whichever list. *)
Definition holds s t := exists m, valid s t m.

Lemma step_reported s x s' t m now : step s x = Some s' -> In (t, (m, now)) (reported s') ->
  In (t, (m, now)) (reported s) \/ (cclock s' (owner t) = now /\ valid s' t m).
Proof.
  intros H J; destruct x; outcome H; cbn in J; auto.
  destruct J as [E | J]; auto. inversion E; subst; clear E. right; split; auto.
  conds. eexists; split; [left; reflexivity | cbn; auto].
Qed.

Lemma run_reported xs : forall s s' t m now, run s xs = Some s' -> In (t, (m, now)) (reported s') ->
  In (t, (m, now)) (reported s) \/ exists ys zs s1, xs = ys ++ zs /\ run s ys = Some s1 /\
    cclock s1 (owner t) = now /\ valid s1 t m.
Proof.
  induction xs as [|x xs IH]; cbn; intros s s' t m now H J; [left; congruence|].
  destruct (Model.step _ _ _ _ _ _ _ _ s x) as [s1|] eqn:E; [|discriminate].
  destruct (IH s1 s' t m now H J) as [K | (ys & zs & s2 & -> & K & C)].
  - destruct (step_reported s x s1 t m now E K) as [L | [C V]]; auto.
    right; exists [x], xs, s1; cbn; rewrite E; auto.
  - right; exists (x :: ys), zs, s2; cbn; rewrite E; auto.
Qed.

(* T1b: at the clock reading of each yes, the token was valid. *)
Theorem reported_while_valid s0 xs s t m now :
  is_start s0 -> run s0 xs = Some s -> In (t, (m, now)) (reported s) ->
  exists ys zs s1, xs = ys ++ zs /\ run s0 ys = Some s1 /\ cclock s1 (owner t) = now /\ valid s1 t m.
Proof.
  intros (_ & _ & _ & _ & _ & T) H J; destruct (run_reported xs s0 s t m now H J) as [K | K]; auto.
  rewrite T in K; destruct K.
Qed.

(* The token was held once. *)
Definition known s t := In t (ended s) \/ exists p, In (t, p) (held s).
Definition past s t := known s t /\ forall m z, In (t, (m, z)) (held s) -> z <= cclock s (owner t).

Lemma tick_forward dn dc c : within_drift nodes clients slow fast dn dc = true -> In c clients -> 0 <= dc c.
Proof. intros H C; unfold within_drift in H; rewrite forallb_forall in H; specialize (H c C); conds; auto. Qed.

Lemma kept_by_end t u (p : nat * Z) l :
  t <> u -> In (t, p) l -> In (t, p) (filter (fun p => negb (token_eqb (fst p) u)) l).
Proof.
  intros N J; apply filter_In; split; auto; cbn -[token_eqb]. apply negb_true_iff, not_true_iff_false.
  intros E; apply token_eqb_eq in E; auto.
Qed.

(* Unless the token passes to the next lock. *)
Lemma known_step s x s' t : x <> Part t -> step s x = Some s' -> known s t -> known s' t.
Proof.
  intros X H K; destruct x; outcome H; auto.
  - destruct K as [K | [p K]]; [left; exact K | right; exists p; right; exact K].
  - destruct (token_eqb t t0) eqn:E; conds; [subst; left; left; auto|].
    destruct K as [K | [p K]]; [left; right; exact K | right; exists p; cbn -[token_eqb]].
    apply kept_by_end; auto. intros ->. rewrite (proj2 (token_eqb_eq _ _) eq_refl) in E; discriminate.
  - destruct K as [K | [p K]]; [left; exact K | right; exists p]. apply kept_by_end; congruence.
Qed.

Lemma past_step s x s' t :
  In (owner t) clients -> x <> Part t -> step s x = Some s' -> past s t -> past s' t.
Proof.
  intros C X H [K P]; split; [eapply known_step; eauto|]. destruct x; outcome H; auto.
  - (* Tick *) intros m z J; cbn in *; specialize (P m z J).
    pose proof (tick_forward dn dc (owner t) ltac:(assumption) C); lia.
  - (* Hold *) intros m' z' [E | J]; [|exact (P m' z' J)]. inversion E; subst; clear E; exfalso; conds.
    match goal with H : _ || _ = true |- _ => apply orb_true_iff in H as [H | H] end.
    + unfold is_ended in *; cbn in *; conds. destruct K as [K | [p K]]; [auto|].
      match goal with H : was_held _ _ = false |- _ => rewrite <- not_true_iff_false in H; apply H end.
      unfold was_held; apply existsb_exists; exists (t, p); split; auto. now apply token_eqb_eq.
    + unfold is_held in *. match goal with H : existsb _ _ = true |- _ => apply existsb_exists in H as ([u [a b]] & J & L) end.
      cbn -[token_eqb] in L; conds; subst u. specialize (P a b J). lia.
  - (* End *) intros m z J; apply filter_In in J as [J _]; exact (P m z J).
  - (* Part *) intros m z J; apply filter_In in J as [J _]; exact (P m z J).
Qed.

Lemma run_kept_but (P : state -> Prop) xs t :
  (forall s x s', x <> Part t -> step s x = Some s' -> P s -> P s') -> ~ In (Part t) xs ->
  forall s s', run s xs = Some s' -> P s -> P s'.
Proof.
  intros K; induction xs as [|x xs IH]; cbn; intros N s s' H I; [congruence|].
  destruct (Model.step _ _ _ _ _ _ _ _ s x) as [s1|] eqn:E; [|discriminate].
  exact (IH (fun F => N (or_intror F)) s1 s' H (K s x s1 (fun F => N (or_introl F)) E I)).
Qed.

(* T1c: a token that was valid, and is not any more, is never valid again for the same lock. *)
Theorem one_interval s1 xs s2 ys s3 t :
  In (owner t) clients -> ~ In (Part t) (xs ++ ys) -> run s1 xs = Some s2 -> run s2 ys = Some s3 ->
  holds s1 t -> ~ holds s2 t -> ~ holds s3 t.
Proof.
  intros C A H H' (m & z & J & _) N (m' & z' & J' & L). rewrite in_app_iff in A.
  assert (P : past s2 t).
  { split; [eapply (run_kept_but (fun s => known s t) xs t); eauto using known_step; right; eauto|].
    intros a b K; destruct (Z_le_gt_dec b (cclock s2 (owner t))); auto.
    exfalso; apply N; exists a, b; split; auto; lia. }
  destruct (run_kept_but (fun s => past s t) ys t (fun s x s' => past_step s x s' t C)
    ltac:(auto) s2 s3 H' P) as [_ Q]. specialize (Q m' z' J'). lia.
Qed.
End Reports.

(*
 * What a client knows of a node. In the model a grant counts by the age of the memory that granted
 * it, and a push by the node's clock; a client sees neither. It has the answer to a heartbeat: the
 * node's clock and marker when it ran. The library's use of it (core/trust.c) is not proved.
 *)
Require Import ZArith List Bool Lia.
Require Import Model Invariant Reports.
Open Scope Z_scope.

Section Facts.
Variables (nodes : list node) (clients : list client).
Variable quorum : nat -> list node -> bool.
Variables (slow fast grain max_ttl : Z).
Hypothesis clocks : 0 < slow <= fast.
Notation step := (step strict nodes clients quorum slow fast grain max_ttl).
Notation run := (run strict nodes clients quorum slow fast grain max_ttl).

(* Between two states, by the clocks of a node and of a client. *)
Record after (n : node) (c : client) (s s' : state) : Prop := {
  goes_on : cclock s c <= cclock s' c;
  drifts : slow * (nclock s' n - nclock s n) <= fast * (cclock s' c - cclock s c);
  counts : (memory s n <= memory s' n)%nat;
  keeps : forall k, (k <= memory s n)%nat -> born s' n k = born s n k }.

Lemma step_after n c s x s' :
  In n nodes -> In c clients -> step s x = Some s' -> after n c s s'.
Proof.
  intros N C H; destruct x; outcome H; try (split; cbn; auto; lia).
  - (* Tick *)
    assert (W : within_drift nodes clients slow fast dn dc = true) by assumption.
    unfold within_drift in W; rewrite forallb_forall in W; specialize (W c C); conds.
    match goal with H : forallb (fun n => agree _ _ _ (dn n)) nodes = true |- _ =>
      rewrite forallb_forall in H; specialize (H n N); unfold agree in H; conds end.
    split; cbn; auto; lia.
  - (* Forget *)
    split; cbn -[Nat.eqb]; unfold upd; try lia; [|intros k K]; destruct (Nat.eqb n n0) eqn:E; auto;
      apply Nat.eqb_eq in E; subst n0; [lia|].
    destruct (Nat.eqb k _) eqn:F; auto. apply Nat.eqb_eq in F; lia.
Qed.

Lemma run_after n c xs : In n nodes -> In c clients ->
  forall s s', run s xs = Some s' -> after n c s s'.
Proof.
  intros N C; induction xs as [|x xs IH]; cbn; intros s s' H.
  - inversion H; subst; split; auto; lia.
  - destruct (Model.step _ _ _ _ _ _ _ _ s x) as [s1|] eqn:E; [|discriminate].
    destruct (step_after n c s x s1 N C E) as [A1 A2 A3 A4], (IH s1 s' H) as [B1 B2 B3 B4].
    split; try lia. intros k K; rewrite B4 by lia; auto.
Qed.

(*
 * A memory begins at s0. A heartbeat runs in it at s1; it says, by the node's clock, that the memory
 * is u old or older. Its answer arrives at s2. At s3 the client counts a grant of that memory:
 * max_ttl after the answer, less u by the slowest clock.
 *)
Theorem age_is_known s s0 xs s1 ys s2 zs s3 g u :
  step s (Forget (place g)) = Some s0 -> since g = memory s0 (place g) ->
  run s0 xs = Some s1 -> run s1 ys = Some s2 -> run s2 zs = Some s3 ->
  In (place g) nodes -> In (owner (who g)) clients ->
  u <= nclock s1 (place g) - nclock s0 (place g) ->
  cclock s2 (owner (who g)) + max_ttl - u * slow / fast <= cclock s3 (owner (who g)) ->
  aged strict max_ttl s3 g = true.
Proof.
  intros F S H1 H2 H3 N C U W.
  destruct (run_after _ _ _ N C _ _ H1) as [A1 A2 A3 A4].
  destruct (run_after _ _ _ N C _ _ H2) as [B1 B2 B3 B4], (run_after _ _ _ N C _ _ H3) as [].
  unfold aged; cbn; rewrite !orb_false_r; apply Z.leb_le; rewrite keeps0, B4, A4 by lia.
  cbn -[Nat.eqb] in F; inversion F; subst s0; cbn -[Nat.eqb] in *; unfold upd in *.
  rewrite S, !Nat.eqb_refl. pose proof (Z.mul_div_le (u * slow) fast ltac:(lia)). nia.
Qed.

(*
 * A heartbeat is sent at s1, and runs at s2. Later its reading of the node's clock, and the time
 * since it was sent by the fastest clock, bound the node's clock from above: what [Read] asks for.
 *)
Theorem clock_is_known s1 xs s2 ys s3 n c h :
  run s1 xs = Some s2 -> run s2 ys = Some s3 -> In n nodes -> In c clients ->
  fast * (cclock s3 c - cclock s1 c) <= slow * (h - nclock s2 n) -> nclock s3 n <= h.
Proof.
  intros H1 H2 N C W.
  destruct (run_after _ _ _ N C _ _ H1) as [], (run_after _ _ _ N C _ _ H2) as []; nia.
Qed.
End Facts.

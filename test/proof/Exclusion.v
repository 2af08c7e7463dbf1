(*
 * Exclusion (T1), with restarts (T2) and pushed grants (T7): after every run, tokens that have
 * validity by lists whose quorums meet are one token.
 *)
Require Import ZArith List Bool Lia.
Require Import Model Invariant.
Import ListNotations.
Open Scope Z_scope.

Section Exclusion.
Variables (nodes : list node) (clients : list client).
Variable quorum : nat -> list node -> bool.
Variables (slow fast grain max_ttl : Z).
Hypothesis clocks : 0 < slow <= fast.
Hypothesis grains : 0 <= grain.
Hypothesis ttls : 0 <= max_ttl.

Notation step := (step strict nodes clients quorum slow fast grain max_ttl).
Notation run := (run strict nodes clients quorum slow fast grain max_ttl).
Notation inv := (inv nodes clients quorum slow fast grain max_ttl).
Notation worth := (worth slow fast grain).
Notation live := (live slow fast grain).
Notation over := (over clients slow fast grain max_ttl).

Lemma send_inv s t k d s' : inv s -> step s (Send t k d) = Some s' -> inv s'.
Proof.
  intros I H; cbn in H; destruct (_ && _) eqn:B in H; inversion H; subst; clear H; conds.
  destruct I as [I1 I2 I3 I4 I5]; split; auto.
  intros r [<- | J]; cbn; [repeat split; auto; lia | now apply I1].
Qed.

Lemma exec_inv s r n e s' : inv s -> step s (Exec r n e) = Some s' -> inv s'.
Proof.
  intros I H; cbn in H; destruct (_ && _) eqn:B in H; [|discriminate]; conds.
  destruct (inv_sent _ _ _ _ _ _ _ s I r ltac:(assumption)) as (O & A & M).
  set (g := Grant _ _ _ _) in H.
  assert (W : worth s g <= slow * max_ttl) by (unfold Invariant.worth; cbn; nia).
  assert (L : worth s g <= slow * (e - nclock s n)) by (unfold Invariant.worth; cbn; nia).
  destruct (has s n (tok r)) eqn:F.
  - inversion H; subst; clear H; apply put_inv; auto; try reflexivity.
    + right; split; auto. intros u z K; unfold at_least; rewrite K; lia.
    + repeat split; cbn; auto.
    + unfold outlasts; cbn. unfold at_least; destruct (keys s n) as [[u z]|]; nia.
  - destruct (is_free s n && negb (is_renewal (what r))) eqn:Y; inversion H; subst; clear H; auto; conds.
    apply put_inv; auto. repeat split; cbn; auto.
Qed.

Lemma pass_inv s t n e s' : inv s -> step s (Pass t n e) = Some s' -> inv s'.
Proof.
  intros I H; cbn in H; destruct (_ && _) eqn:B in H; inversion H; subst; clear H; conds.
  apply put_inv; auto; [repeat split; cbn; auto | unfold outlasts; cbn; lia].
Qed.

(* What a push says, put in terms of the waiter's clock, is less than what it says. *)
Lemma read_inv s p h s' : inv s -> step s (Read p h) = Some s' -> inv s'.
Proof.
  intros I H; cbn in H; destruct (said p) as [|e] eqn:P; [discriminate|].
  destruct (_ && _) eqn:B in H; inversion H; subst; clear H; conds. set (g := Grant _ _ _ _).
  pose proof (inv_granted _ _ _ _ _ _ _ s I p ltac:(assumption)) as (O & N & S & W).
  assert (E : worth s g = slow * (e - h - grain)) by (unfold Invariant.worth, g; cbn; nia).
  assert (Q : worth s p = fast * (e - nclock s (place p))) by (unfold Invariant.worth; rewrite P; auto).
  assert (L : live s g -> live s p /\ worth s g <= worth s p /\ worth s g <= slow * (e - nclock s (place p))).
  { intros [L1 L2]. rewrite E in L2.
    assert (e - h - grain > 0) by nia. assert (slow * (e - h - grain) <= slow * (e - nclock s (place p))) by nia.
    assert (slow * (e - nclock s (place p)) <= fast * (e - nclock s (place p))) by nia.
    repeat split; auto; lia. }
  assert (V : forall k, live s g -> over s (place p) k p -> over s (place p) k g).
  { intros k X Y c C; specialize (Y c C); destruct (L X) as (_ & Z & _); lia. }
  assert (A : forall a, In a (granted s) -> place p = place a -> live s g -> live s a ->
              who g = who a \/ over s (place p) (Nat.max (since p) (since a)) g \/
              over s (place p) (Nat.max (since p) (since a)) a).
  { intros a G F X Y. destruct (L X) as (Z & _).
    destruct (inv_apart _ _ _ _ _ _ _ s I p a ltac:(assumption) G F Z Y) as [T | [T | T]]; auto. }
  split; cbn.
  - exact (inv_sent _ _ _ _ _ _ _ s I).
  - intros a [<- | G]; [|exact (inv_granted _ _ _ _ _ _ _ s I a G)].
    repeat split; cbn; auto. change (worth s g <= slow * max_ttl).
    destruct (Z_le_gt_dec (e - h - grain) 0); [nia|].
    assert (slow * (e - h - grain) <= fast * (e - nclock s (place p))) by nia. lia.
  - intros a [<- | G] X; [|exact (inv_keeps _ _ _ _ _ _ _ s I a G X)].
    destruct (L X) as (Y & Z1 & Z2).
    destruct (inv_keeps _ _ _ _ _ _ _ s I p ltac:(assumption) Y) as [(z & K & T) | T]; [left | right].
    + exists z; split; auto. unfold outlasts in *; rewrite P in T; cbn in *.
      apply Z.le_trans with (1 := Z2); apply Z.mul_le_mono_nonneg_l; lia.
    + exact (V _ X T).
  - intros a b [<- | G] [<- | G'] F X Y; unfold apart; [left; reflexivity | | |].
    + exact (A b G' F X Y).
    + destruct (A a G (eq_sym F) Y X) as [T | [T | T]]; [left; auto | right; right | right; left];
        rewrite Nat.max_comm, F; exact T.
    + exact (inv_apart _ _ _ _ _ _ _ s I a b G G' F X Y).
  - intros t m z J; destruct (inv_held _ _ _ _ _ _ _ s I t m z J) as (X & gs & Y & T); split; auto.
    exists gs; split; auto. intros a G; destruct (T a G) as (T1 & T2); split; cbn; auto.
Qed.

Lemma delete_inv s t n s' : inv s -> step s (Delete t n) = Some s' -> inv s'.
Proof.
  intros I H; cbn in H; destruct (_ && _) eqn:B in H; inversion H; subst; clear H; conds.
  destruct (keys s n) as [[u z]|] eqn:K; [|discriminate]; conds; subst u.
  destruct I as [I1 I2 I3 I4 I5]; split; auto.
  intros g G V; pose proof (I3 g G V) as J; unfold keeps in *; cbn in *; unfold upd.
  destruct (Nat.eqb (place g) n) eqn:E; auto. apply Nat.eqb_eq in E; subst n.
  destruct J as [(y & J & _) | J]; [|right; exact J].
  exfalso; destruct V as [V _]; cbn in V; apply V; congruence.
Qed.

Lemma hold_inv s t m gs z s' : inv s -> step s (Hold t m gs z) = Some s' -> inv s'.
Proof.
  intros I H; cbn -[token_eqb] in H; destruct (_ && _) eqn:B in H; inversion H; subst; clear H; conds.
  split; try (destruct I; assumption).
  intros u m' y [E | J]; [|exact (inv_held _ _ _ _ _ _ _ s I u m' y J)].
  inversion E; subst u m' y; clear E. split; [unfold is_ended in *; cbn in *; conds; auto|].
  exists gs; split; auto. intros g G.
  match goal with H : forallb _ gs = true |- _ => rewrite forallb_forall in H; specialize (H g G) end.
  conds. unfold aged, lasts, end_of in *; subst t; cbn in *.
  match goal with H : _ || _ = true |- _ => rewrite !orb_false_r in H end; conds.
  destruct (said g) as [k a d|]; [|discriminate]; conds; repeat split; auto; eauto.
Qed.

Lemma end_inv s t s' : inv s -> step s (End t) = Some s' -> inv s'.
Proof.
  intros I H; cbn -[token_eqb] in H; inversion H; subst; clear H.
  set (s' := State _ _ _ _ _ _ _ _ _ _).
  assert (L : forall g, live s' g -> live s g) by (intros g [E W]; split; auto; intros J; apply E; right; exact J).
  destruct I as [I1 I2 I3 I4 I5]; split; auto.
  - intros g G V; exact (I3 g G (L g V)).
  - intros a b G G' E V V'; exact (I4 a b G G' E (L a V) (L b V')).
  - intros u m z J; apply filter_In in J as [J X]; cbn -[token_eqb] in X; conds.
    destruct (I5 u m z J) as (N & gs & C). split; [|exists gs; exact C].
    intros [-> | Y]; [|exact (N Y)]. rewrite (proj2 (token_eqb_eq u u) eq_refl) in X; discriminate.
Qed.

Lemma part_inv s t s' : inv s -> step s (Part t) = Some s' -> inv s'.
Proof.
  intros I H; cbn -[token_eqb] in H; inversion H; subst; clear H. destruct I as [I1 I2 I3 I4 I5].
  split; auto. intros u m z J; apply filter_In in J as [J _]; exact (I5 u m z J).
Qed.

Lemma forget_inv s n s' : inv s -> step s (Forget n) = Some s' -> inv s'.
Proof.
  intros I H; cbn -[Nat.eqb] in H; inversion H; subst; clear H.
  set (s' := State _ _ _ _ _ _ _ _ _ _).
  (* What the clients know of earlier memories stays. *)
  assert (B : forall m k, (k <= memory s m)%nat -> born s' m k = born s m k).
  { intros m k K; unfold s'; cbn -[Nat.eqb]; unfold upd. destruct (Nat.eqb m n) eqn:E; auto.
    apply Nat.eqb_eq in E; subst m. destruct (Nat.eqb k (S (memory s n))) eqn:F; auto.
    apply Nat.eqb_eq in F; lia. }
  split.
  - exact (inv_sent _ _ _ _ _ _ _ s I).
  - intros g G; destruct (inv_granted _ _ _ _ _ _ _ s I g G) as (O & N & S & W).
    repeat split; auto. unfold s'; cbn -[Nat.eqb]; unfold upd; destruct (Nat.eqb (place g) n) eqn:E; auto.
    apply Nat.eqb_eq in E; subst n; lia.
  - intros g G V; pose proof (inv_keeps _ _ _ _ _ _ _ s I g G V) as K.
    destruct (inv_granted _ _ _ _ _ _ _ s I g G) as (_ & _ & _ & W).
    destruct (Nat.eq_dec (place g) n) as [<- | E].
    + right; intros c C. unfold s'; cbn -[Nat.eqb]; unfold upd. rewrite !Nat.eqb_refl.
      change (worth s g <= slow * (cclock s c + max_ttl - cclock s c)). nia.
    + apply Nat.eqb_neq in E.
      assert (M : memory s' (place g) = memory s (place g)) by (unfold s'; cbn -[Nat.eqb]; unfold upd; now rewrite E).
      assert (Y : keys s' (place g) = keys s (place g)) by (unfold s'; cbn -[Nat.eqb]; unfold upd; now rewrite E).
      unfold keeps, Invariant.over in *. rewrite M, Y, B by lia. exact K.
  - intros a b G G' E V V'. destruct (inv_granted _ _ _ _ _ _ _ s I a G) as (_ & _ & S & _).
    destruct (inv_granted _ _ _ _ _ _ _ s I b G') as (_ & _ & S' & _).
    destruct (inv_apart _ _ _ _ _ _ _ s I a b G G' E V V') as [T | [T | T]]; unfold apart; auto; right;
      [left | right]; intros c C; rewrite B by (rewrite E in *; lia); exact (T c C).
  - intros t m z J; destruct (inv_held _ _ _ _ _ _ _ s I t m z J) as (N & gs & Q & C); split; auto.
    exists gs; split; auto. intros g G; destruct (C g G) as (C1 & C2 & C3 & C4).
    destruct (inv_granted _ _ _ _ _ _ _ s I g C1) as (_ & _ & S & _).
    repeat split; auto. rewrite B by auto; exact C3.
Qed.

Lemma step_inv s x s' : inv s -> step s x = Some s' -> inv s'.
Proof.
  intros I; destruct x;
    [eapply tick_inv | eapply send_inv | eapply exec_inv | eapply pass_inv | eapply read_inv |
     eapply delete_inv | eapply hold_inv | eapply end_inv | eapply part_inv |
     eapply forget_inv]; eassumption.
Qed.

Lemma start_inv s : is_start s -> inv s.
Proof. intros (K & S & G & E & H & _); split; rewrite ?K, ?S, ?G, ?E, ?H; cbn; easy. Qed.

Lemma run_inv xs s s' : inv s -> run s xs = Some s' -> inv s'.
Proof. apply run_kept, step_inv. Qed.

(* A grant is live as long as a validity that it supports lasts. *)
Lemma valid_is_live s g t z k a d :
  said g = Asked k a d -> who g = t -> ~ In t (ended s) ->
  z <= a + d - drift_of slow fast grain d -> cclock s (owner t) < z -> live s g.
Proof.
  intros E T N Z C; subst t; split; auto. unfold Invariant.worth, drift_of in *; rewrite E.
  pose proof (Z.mul_div_le (d * slow) fast ltac:(lia)). nia.
Qed.

Lemma over_is_not_live s g n k c :
  over s n k g -> In c clients -> born s n k c + max_ttl <= cclock s c -> ~ live s g.
Proof. intros O C B [_ L]; specialize (O c C); nia. Qed.

(* Two lists, or pairs of lists, whose quorums share a node. *)
Definition meet m m' := forall q q', quorum m q = true -> quorum m' q' = true -> exists n, In n q /\ In n q'.

Theorem exclusion s0 xs s t t' m m' :
  is_start s0 -> run s0 xs = Some s ->
  valid s t m -> valid s t' m' -> meet m m' -> t = t'.
Proof.
  intros S H (z & U & C) (z' & U' & C') M. pose proof (run_inv xs s0 s (start_inv s0 S) H) as I.
  destruct (inv_held _ _ _ _ _ _ _ s I _ _ _ U) as (E & gs & Q & G).
  destruct (inv_held _ _ _ _ _ _ _ s I _ _ _ U') as (E' & gs' & Q' & G').
  destruct (M _ _ Q Q') as (n & N & N').
  apply in_map_iff in N as (g & P & N); apply in_map_iff in N' as (g' & P' & N').
  destruct (G g N) as (J & T & B & k & a & d & A & L); destruct (G' g' N') as (J' & T' & B' & k' & a' & d' & A' & L').
  pose proof (valid_is_live s g t z k a d A T E L C) as V.
  pose proof (valid_is_live s g' t' z' k' a' d' A' T' E' L' C') as V'.
  destruct (inv_granted _ _ _ _ _ _ _ s I g J) as (O & _); destruct (inv_granted _ _ _ _ _ _ _ s I g' J') as (O' & _).
  rewrite T in O; rewrite T' in O'.
  assert (X : forall f, live s f -> over s n (Nat.max (since g) (since g')) f -> False).
  { intros f F K. destruct (Nat.max_dec (since g) (since g')) as [Y | Y]; rewrite Y in K.
    - rewrite <- P in K; exact (over_is_not_live s f _ _ (owner t) K O B F).
    - rewrite <- P' in K; exact (over_is_not_live s f _ _ (owner t') K O' B' F). }
  destruct (inv_apart _ _ _ _ _ _ _ s I g g' J J' ltac:(congruence) V V') as [K | [K | K]].
  - congruence.
  - exfalso; apply (X g V); rewrite <- P; exact K.
  - exfalso; apply (X g' V'); rewrite <- P; exact K.
Qed.
End Exclusion.

(*
 * What is true after every run: a node that has granted keeps the key for at least as long as the
 * grant says, unless it has lost its memory, and then no grant counts before that one is over.
 *)
Require Import ZArith List Bool Lia.
Require Import Model.
Import ListNotations.
Open Scope Z_scope.

Lemma token_eqb_eq t u : token_eqb t u = true <-> t = u.
Proof.
  destruct t, u; unfold token_eqb; cbn; rewrite andb_true_iff, !Nat.eqb_eq.
  split; [intros [-> ->]; reflexivity | intros E; inversion E; auto].
Qed.

Lemma kind_eq k l : Bool.eqb (is_renewal k) (is_renewal l) = true -> k = l.
Proof. destruct k, l; easy. Qed.

Lemma round_eqb_eq r s : round_eqb r s = true -> r = s.
Proof.
  destruct r, s; unfold round_eqb; cbn. rewrite !andb_true_iff, !Z.eqb_eq, token_eqb_eq.
  intros [[[-> K] ->] ->]; apply kind_eq in K; congruence.
Qed.

Lemma grant_eqb_eq g h : grant_eqb g h = true -> g = h.
Proof.
  destruct g as [t n k x], h as [t' n' k' y]; unfold grant_eqb; cbn.
  rewrite !andb_true_iff, !Nat.eqb_eq, token_eqb_eq; intros [[[-> ->] ->] E].
  destruct x, y; cbn in E; try discriminate.
  - rewrite !andb_true_iff, !Z.eqb_eq in E; destruct E as [[K ->] ->]; apply kind_eq in K; congruence.
  - apply Z.eqb_eq in E; congruence.
Qed.

Lemma mem_token t l : mem token_eqb t l = true -> In t l.
Proof. apply mem_in; intros; now apply token_eqb_eq. Qed.
Lemma mem_round r l : mem round_eqb r l = true -> In r l.
Proof. apply mem_in, round_eqb_eq. Qed.
Lemma mem_grant g l : mem grant_eqb g l = true -> In g l.
Proof. apply mem_in, grant_eqb_eq. Qed.
Lemma not_mem_token t l : mem token_eqb t l = false -> ~ In t l.
Proof.
  intros H J; rewrite <- not_true_iff_false in H; apply H; unfold mem; apply existsb_exists.
  exists t; split; [exact J | now apply token_eqb_eq].
Qed.

Ltac conds := repeat match goal with
  | H : _ && _ = true |- _ => apply andb_true_iff in H as [? ?]
  | H : negb _ = true |- _ => apply negb_true_iff in H
  | H : mem Nat.eqb _ _ = true |- _ => apply mem_nat in H
  | H : mem round_eqb _ _ = true |- _ => apply mem_round in H
  | H : mem grant_eqb _ _ = true |- _ => apply mem_grant in H
  | H : mem token_eqb _ _ = true |- _ => apply mem_token in H
  | H : mem token_eqb _ _ = false |- _ => apply not_mem_token in H
  | H : token_eqb _ _ = true |- _ => apply token_eqb_eq in H
  | H : (_ <=? _) = true |- _ => apply Z.leb_le in H
  | H : (_ <? _) = true |- _ => apply Z.ltb_lt in H
  end.

Section Invariant.
Variables (nodes : list node) (clients : list client).
Variable quorum : nat -> list node -> bool.
Variables (slow fast grain max_ttl : Z).
Hypothesis clocks : 0 < slow <= fast.
Hypothesis grains : 0 <= grain.
Hypothesis ttls : 0 <= max_ttl.

Notation step := (step strict nodes clients quorum slow fast grain max_ttl).
Notation run := (run strict nodes clients quorum slow fast grain max_ttl).
Notation aged := (aged strict max_ttl).

(* The rest of the time that a grant speaks of, in units of 1 / (slow * fast). *)
Definition worth s g := match said g with
  | Asked _ a d => slow * (d - grain) - fast * (cclock s (owner (who g)) - a)
  | Pushed e => fast * (e - nclock s (place g))
  end.
Definition live s g := ~ In (who g) (ended s) /\ 0 < worth s g.

(* A key that expires at e, by the node's clock, is there for as long as the grant says. *)
Definition outlasts s g e := match said g with
  | Asked _ _ _ => worth s g <= slow * (e - nclock s (place g))
  | Pushed e' => e' <= e
  end.

(* The grant is over before any client counts a grant of the node's k-th memory. *)
Definition over s n k g := forall c, In c clients -> worth s g <= slow * (born s n k c + max_ttl - cclock s c).

Definition keeps s g :=
  (exists e, keys s (place g) = Some (who g, e) /\ outlasts s g e) \/
  over s (place g) (memory s (place g)) g.

(* Two grants of a node have one token, or one of them is over before the later one counts. *)
Definition apart s g h :=
  who g = who h \/ over s (place g) (Nat.max (since g) (since h)) g \/
  over s (place g) (Nat.max (since g) (since h)) h.

Definition sound s g :=
  In (owner (who g)) clients /\ In (place g) nodes /\ (since g <= memory s (place g))%nat /\
  worth s g <= slow * max_ttl.

Definition counts s t m z gs :=
  quorum m (map place gs) = true /\
  forall g, In g gs -> In g (granted s) /\ who g = t /\
    born s (place g) (since g) (owner t) + max_ttl <= cclock s (owner t) /\
    exists k a d, said g = Asked k a d /\ z <= a + d - drift_of slow fast grain d.

Record inv s : Prop := {
  inv_sent : forall r, In r (sent s) ->
    In (owner (tok r)) clients /\ start r <= cclock s (owner (tok r)) /\ ttl r <= max_ttl;
  inv_granted : forall g, In g (granted s) -> sound s g;
  inv_keeps : forall g, In g (granted s) -> live s g -> keeps s g;
  inv_apart : forall g h, In g (granted s) -> In h (granted s) -> place g = place h ->
    live s g -> live s h -> apart s g h;
  inv_held : forall t m z, In (t, (m, z)) (held s) -> ~ In t (ended s) /\ exists gs, counts s t m z gs }.

(* A live grant's key is there, so a node that may give the key away has lost its memory. *)
Lemma free_is_over s g :
  keeps s g -> live s g -> is_free s (place g) = true -> over s (place g) (memory s (place g)) g.
Proof.
  intros [(e & K & W) | O] [_ L] F; auto. exfalso.
  unfold is_free in F; rewrite K in F; conds. unfold outlasts, worth in *; destruct (said g); nia.
Qed.

Lemma has_is_over s g t :
  keeps s g -> has s (place g) t = true -> who g = t \/ over s (place g) (memory s (place g)) g.
Proof.
  intros [(e & K & W) | O] F; auto. left; unfold has in F; rewrite K in F; conds; auto.
Qed.

(* A node sets the key, and grants: the heart of the proof. *)
Lemma put_inv s n t e g :
  inv s -> is_free s n = true \/ has s n t = true /\ (forall u e', keys s n = Some (u, e') -> e' <= e) ->
  who g = t -> place g = n -> since g = memory s n -> sound s g -> outlasts s g e ->
  inv (put s n t e g).
Proof.
  intros I M T P S B O; subst t n.
  assert (A : forall h, In h (granted s) -> place g = place h -> live s h ->
              who h = who g \/ over s (place g) (memory s (place g)) h).
  { intros h G E V; pose proof (inv_keeps s I h G V) as K; rewrite E in *.
    destruct M as [F | [F _]]; [right; now apply free_is_over | now apply has_is_over]. }
  assert (X : forall h, In h (granted s) -> place g = place h -> live s h ->
              over s (place g) (Nat.max (since g) (since h)) h \/ who h = who g).
  { intros h G E V; destruct (A h G E V) as [Q | Q]; auto; left.
    destruct (inv_granted s I h G) as (_ & _ & Y & _). rewrite <- E in Y.
    replace (Nat.max (since g) (since h)) with (memory s (place g)) by lia; auto. }
  split; cbn.
  - exact (inv_sent s I).
  - intros h [<- | G]; [exact B | exact (inv_granted s I h G)].
  - intros h [<- | G] V.
    + left; exists e; cbn; unfold upd; rewrite Nat.eqb_refl; auto.
    + pose proof (inv_keeps s I h G V) as K; pose proof K as K'; unfold keeps in K |- *; cbn; unfold upd.
      destruct (Nat.eqb (place h) (place g)) eqn:E; auto. apply Nat.eqb_eq in E.
      destruct K as [(z & K & W) | K]; auto. destruct M as [F | [F L]].
      * right; rewrite <- E in F; exact (free_is_over s h K' V F).
      * left; exists e; split.
        -- unfold has in F; rewrite <- E, K in F; conds; congruence.
        -- rewrite E in K; specialize (L _ _ K). unfold outlasts, worth in *; cbn in *.
           destruct (said h); nia.
  - intros a b [<- | G] [<- | G'] E V V'; unfold apart; auto.
    + destruct (X b G' E V') as [Q | Q]; [right; right; exact Q | auto].
    + destruct (X a G (eq_sym E) V) as [Q | Q]; auto. right; left; rewrite Nat.max_comm, E; exact Q.
    + exact (inv_apart s I a b G G' E V V').
  - intros u m z H; destruct (inv_held s I u m z H) as (N & gs & Q & C); split; auto.
    exists gs; split; auto. intros h G; destruct (C h G) as (C1 & C2); split; cbn; auto.
Qed.

Lemma tick_inv s dn dc s' : inv s -> step s (Tick dn dc) = Some s' -> inv s'.
Proof.
  intros I H; cbn in H; destruct (within_drift _ _ _ _ dn dc) eqn:W; inversion H; subst; clear H.
  set (s' := State _ _ _ _ _ _ _ _ _ _). assert (C : forall c, In c clients -> 0 <= dc c /\
    (forall c', In c' clients -> slow * dc c' <= fast * dc c) /\
    (forall n, In n nodes -> 0 <= dn n /\ slow * dc c <= fast * dn n /\ slow * dn n <= fast * dc c)).
  { intros c J; unfold within_drift in W; rewrite forallb_forall in W; specialize (W c J); conds.
    split; auto; split; intros x X;
      match goal with
      | H : forallb _ clients = true |- context [dc x] => rewrite forallb_forall in H; specialize (H x X)
      | H : forallb _ nodes = true |- context [dn x] => rewrite forallb_forall in H; specialize (H x X)
      end; unfold agree in *; conds; auto. }
  assert (D : forall g, sound s g -> worth s' g <= worth s g).
  { intros g (O & P & _); destruct (C _ O) as (C1 & _ & C2); destruct (C2 _ P) as (C3 & _).
    unfold worth; destruct (said g); cbn; nia. }
  assert (L : forall g, In g (granted s) -> live s' g -> live s g).
  { intros g G [E V]; split; auto. pose proof (D g (inv_granted s I g G)); lia. }
  assert (V : forall g k, In g (granted s) -> over s (place g) k g -> over s' (place g) k g).
  { intros g k G O c J; specialize (O c J).
    destruct (inv_granted s I g G) as (Y & P & _). destruct (C c J) as (C1 & C2 & C3).
    destruct (C3 _ P) as (C4 & C5 & C6). specialize (C2 _ Y).
    destruct (C _ Y) as (C7 & C8 & C9). specialize (C8 c J).
    unfold worth in *; destruct (said g); cbn in *; nia. }
  split.
  - intros r J; destruct (inv_sent s I r J) as (J1 & J2 & J3); destruct (C _ J1) as (J4 & _).
    cbn; repeat split; auto; lia.
  - intros g G; pose proof (inv_granted s I g G) as Y; specialize (D g Y).
    destruct Y as (Y1 & Y2 & Y3 & Y4); repeat split; auto; lia.
  - intros g G Y; pose proof (inv_granted s I g G) as (Z1 & Z2 & _).
    destruct (inv_keeps s I g G (L g G Y)) as [(e & K & O) | O]; [left; exists e; split; auto | right; auto].
    destruct (C _ Z1) as (C1 & _ & C2); destruct (C2 _ Z2) as (C3 & C4 & C5).
    unfold outlasts, worth in *; destruct (said g); cbn in *; nia.
  - intros a b G G' E Y Y'.
    destruct (inv_apart s I a b G G' E (L a G Y) (L b G' Y')) as [Q | [Q | Q]]; unfold apart; auto.
    right; right; rewrite E in *; auto.
  - intros t m z J; destruct (inv_held s I t m z J) as (N & gs & Q & X); split; auto.
    exists gs; split; auto. intros g G; destruct (X g G) as (X1 & X2 & X3 & X4); split; [|split; [|split]]; auto.
    destruct (inv_granted s I g X1) as (Y & _); rewrite X2 in Y; destruct (C _ Y) as (Y' & _). cbn; lia.
Qed.
End Invariant.

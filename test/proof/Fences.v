(*
 * Fences: the order of the numbers that holders of a fenced lock send to the resource, as this
 * library makes them.
 *
 * Words. A node has, for one key, the token that holds it, if any, and a counter. K is the length
 * of a range (64 in the library: lib/wire/fence.h). An acquisition is a turn of a token. Turn 0
 * takes the key from a quorum of nodes; each handover by a round of RAISE inside a client begins
 * the next turn with the same token. An acquisition ends when the client reports a counter C: then
 * its range is C - K + 1, ..., C. Its first holder has the first of these fences, and each holder
 * to which the client hands the lock on without a message has the next one.
 *
 * Assumed:
 *   - a node carries out each script in one piece, and keeps the counter of the key (not the key);
 *   - all who change the key or its counter run this protocol, and tokens are fresh;
 *   - two acquisitions of different tokens that are compared count by a list in common.
 *
 * Not assumed: anything about time. A key may vanish at any moment. A command that was ever sent
 * may arrive at any moment, once, more often, or never; so may an answer. Nothing relies on
 * validity, on mutual exclusion, on clocks, or on the fence that a clock suggests: a grant may set
 * a counter to any number that is K or more above the old one.
 *)
Require Import List Bool Arith Lia.
Require Import Common.
Import ListNotations.

(* ---- the world ---- *)

Definition token := nat.                     (* a client draws a new one for each try *)

(* What the client knows of a token. *)
Record lease := Lease {
  turn : nat;
  least : nat;                               (* no RAISE of this turn carries less *)
  held : option (nat * nat);                 (* None: being acquired; the lists and the counter *)
  used : nat }.                              (* holders of this turn after its first one *)

Record state := State {
  key     : node -> option token;
  counter : node -> nat;
  leases  : token -> lease;
  (* The past. Entries are never removed. *)
  said    : list (token * nat * node * nat); (* token, turn, node, counter: an answer that counts *)
  had     : list (token * node * nat);       (* a node had the key for the token at this counter *)
  reports : list (token * nat * nat * nat);  (* token, turn, lists, counter: an acquisition *)
  holders : list (token * nat * nat * nat)   (* token, turn, position in the range, fence *)
}.

Inductive action :=
| Take (t : token) (n : node) (x : nat)      (* a grant that steps: the counter becomes x *)
| Top_up (t : token) (n : node) (f : nat)    (* a top-up that does not step *)
| Raise (t : token) (g : nat) (f : nat) (n : node)   (* RAISE or RENEW of turn g, with fence f *)
| Gone (n : node)                            (* the key expires, or is deleted by anybody *)
| Report (t : token) (m : nat) (q : list node) (x : nat)   (* q agrees on x, by the lists m *)
| Hand_on (t : token)                        (* a handover without a message *)
| Next_turn (t : token)                      (* a handover by a round of RAISE *)
| Lose (n : node) (x : nat).                 (* the node loses its counter: x is there instead *)

(*
 * What the actions are in lib/wire/scripts and lib/core. No action needs the one before: commands
 * may be carried out at any later moment, so only what is always true of them is asked for.
 *
 *   Take       TAKE, PERMIT, QUEUE_PERMIT, WRITE_FENCED, QUEUE, QUEUE_SET, and a key that a release
 *              passes on to a waiter (parts/grants.lua): the key is free or the token's already,
 *              and its counter grows by K or more, to a clock's time or to the counter of another
 *              key of the lock. Also a top-up by TAKE that finds a counter beyond its own fence.
 *   Top_up     any other top-up by TAKE, of any turn that was reported: the counter becomes the
 *              fence, and is not advanced if it is the fence.
 *   Raise      RENEW_FENCED, for RAISE and for a renewal; with fence 0 also a QUEUE, QUEUE_SET or
 *              QUEUE_PERMIT that finds the key its own, which neither steps nor lowers.
 *   Gone       expiry, release, undo, LEAVE, DEL by an operator.
 *   Lose       FLUSHALL, a restart without data, a counter that expires (fence_idle_ms).
 *   Report     acquire_decided, acquire_raise_decided, take_pushes: round_agrees with the fence.
 *   Hand_on    handover_move, silent.
 *   Next_turn  handover_move, with a round.
 *
 * A grant that does not count, because its node is not trusted or its counter is days ahead of the
 * clocks, is one that no Report uses. A try that fails is a token that is not used again.
 *
 * The rules: each can be switched off, to show that it is needed.
 *)
Record rules := Rules {
  steps_by_range   : bool;   (* a grant steps by K; off: by 1 *)
  steps_past_others: bool;   (* a top-up steps at a counter beyond its fence; off: it never does *)
  compares         : bool;   (* RAISE and RENEW change nothing where the key is not the token's *)
  keeps_larger     : bool;   (* RAISE leaves a larger counter as it is *)
  agrees           : bool;   (* reported is a counter that all of a quorum said; off: the largest *)
  next_range       : bool;   (* a handover by a round raises by K *)
  own_turn         : bool;   (* an answer counts only in the turn that asked *)
  within_range     : bool;   (* at most K holders have a range *)
  counters_kept    : bool }. (* no node loses a counter *)

Definition strict := Rules true true true true true true true true true.

Definition is_free_or (o : option token) t := match o with None => true | Some u => Nat.eqb u t end.
Definition is_of (o : option token) t := match o with None => false | Some u => Nat.eqb u t end.
Definition is_acquiring l := match held l with None => true | Some _ => false end.

(* While lists are changed, a majority of each list. *)
Definition is_quorum_of (ls : list (list node)) q :=
  match ls with [] => false | _ => forallb (fun l => is_quorum l q) ls end.

Definition was_said s t g n x :=
  existsb (fun e => let '(u, h, k, y) := e in
    Nat.eqb u t && Nat.eqb h g && Nat.eqb k n && Nat.eqb y x) (said s).
Definition was_said_up_to s t g n x :=
  existsb (fun e => let '(u, h, k, y) := e in
    Nat.eqb u t && Nat.eqb h g && Nat.eqb k n && Nat.leb y x) (said s).
Definition was_reported s t f :=
  existsb (fun e => let '(u, _, _, y) := e in Nat.eqb u t && Nat.eqb y f) (reports s).

Section Protocol.
Variable R : rules.
Variable lists : nat -> list (list node).    (* by which lists a client counts: one, or two *)
Variable K : nat.

Definition first x := x - (K - 1).           (* fence_first: the first fence of the range up to x *)

(* One step. None: the rules do not allow the action in this state. *)
Definition step (s : state) (a : action) : option state :=
  let '(State k c ls sd hd rs hs) := s in
  match a with
  | Take t n x =>
      if is_free_or (k n) t && (c n + (if steps_by_range R then K else 1) <=? x)
      then Some (State (upd k n (Some t)) (upd c n x) ls
                   (if Nat.eqb (turn (ls t)) 0 && is_acquiring (ls t)
                    then (t, 0, n, x) :: sd else sd)
                   ((t, n, x) :: hd) rs hs)
      else None
  | Top_up t n f =>
      if is_free_or (k n) t && was_reported s t f && ((c n <=? f) || negb (steps_past_others R))
      then let x := Nat.max (c n) f in
           Some (State (upd k n (Some t)) (upd c n x) ls sd ((t, n, x) :: hd) rs hs)
      else None
  | Raise t g f n =>
      let x := if keeps_larger R then Nat.max (c n) f else f in
      let counts := is_acquiring (ls t) && (Nat.eqb g (turn (ls t)) || negb (own_turn R)) in
      if (is_of (k n) t || negb (compares R)) && (g <=? turn (ls t)) &&
         (negb (Nat.eqb g (turn (ls t))) || (least (ls t) <=? f))
      then Some (State k (upd c n x) ls
                   (if counts then (t, turn (ls t), n, x) :: sd else sd) ((t, n, x) :: hd) rs hs)
      else None
  | Gone n => Some (State (upd k n None) c ls sd hd rs hs)
  | Report t m q x =>
      let g := turn (ls t) in
      if is_acquiring (ls t) && is_quorum_of (lists m) q &&
         forallb (fun n => if agrees R then was_said s t g n x else was_said_up_to s t g n x) q
      then Some (State k c (upd ls t (Lease g (least (ls t)) (Some (m, x)) 0)) sd hd
                   ((t, g, m, x) :: rs) ((t, g, 0, first x) :: hs))
      else None
  | Hand_on t =>
      match held (ls t) with
      | Some (m, x) =>
          let i := S (used (ls t)) in
          if (i <? K) || negb (within_range R)
          then Some (State k c (upd ls t (Lease (turn (ls t)) (least (ls t)) (held (ls t)) i))
                       sd hd rs ((t, turn (ls t), i, first x + i) :: hs))
          else None
      | None => None
      end
  | Next_turn t =>
      match held (ls t) with
      | Some (_, x) =>
          let from := if next_range R then x + K else x in
          Some (State k c (upd ls t (Lease (S (turn (ls t))) from None 0)) sd hd rs hs)
      | None => None
      end
  | Lose n x =>
      if counters_kept R then None else Some (State (upd k n None) (upd c n x) ls sd hd rs hs)
  end.

Definition run := Common.run step.
End Protocol.

(* At the start nothing was done; counters are as others left them. *)
Definition is_start s :=
  key s = (fun _ => None) /\ leases s = (fun _ => Lease 0 0 None 0) /\
  said s = [] /\ had s = [] /\ reports s = [] /\ holders s = [].

(* ---- majorities ---- *)

Lemma quorum_of_list ls l q : is_quorum_of ls q = true -> In l ls -> is_quorum l q = true.
Proof.
  destruct ls as [|k ls]; [discriminate|]; unfold is_quorum_of; rewrite forallb_forall; auto.
Qed.
Lemma quorums_meet ls ls' l p q : is_quorum_of ls p = true -> is_quorum_of ls' q = true ->
  In l ls -> In l ls' -> exists n, In n p /\ In n q.
Proof. intros; eapply (majorities_meet l); eauto using quorum_of_list. Qed.
Lemma quorum_has_node ls q : is_quorum_of ls q = true -> exists n, In n q.
Proof.
  destruct ls as [|l ls]; [discriminate|]; intros Q.
  destruct (quorums_meet (l :: ls) (l :: ls) l q q Q Q) as (n & I & _); cbn; eauto.
Qed.

(* ---- the proof ---- *)

Section Proof.
Variable lists : nat -> list (list node).
Variable K : nat.
Hypothesis K_positive : 0 < K.
#[local] Arguments Nat.ltb : simpl never.
#[local] Arguments Nat.leb : simpl never.
#[local] Arguments was_said : simpl never.
#[local] Arguments was_reported : simpl never.
#[local] Arguments is_quorum_of : simpl never.
Notation step := (step strict lists K).
Notation run := (run strict lists K).
Notation first := (first K).

Lemma upd_same {A} (f : nat -> A) n x : upd f n x n = x.
Proof. unfold upd; now rewrite Nat.eqb_refl. Qed.
Lemma upd_other {A} (f : nat -> A) n x m : m <> n -> upd f n x m = f m.
Proof. intros H; unfold upd; apply Nat.eqb_neq in H; now rewrite H. Qed.

Lemma was_said_in s t g n x : was_said s t g n x = true <-> In (t, g, n, x) (said s).
Proof.
  unfold was_said; rewrite existsb_exists; split.
  - intros ([[[u h] k] y] & I & E); repeat rewrite andb_true_iff in E; rewrite !Nat.eqb_eq in E.
    decompose [and] E; now subst.
  - intros I; exists (t, g, n, x); now rewrite !Nat.eqb_refl.
Qed.
Lemma was_reported_in s t f : was_reported s t f = true -> exists g m, In (t, g, m, f) (reports s).
Proof.
  unfold was_reported; rewrite existsb_exists.
  intros ([[[u h] m] y] & I & E); rewrite andb_true_iff, !Nat.eqb_eq in E; destruct E; subst; eauto.
Qed.

(* An acquisition of t reached v: a top-up of t need not step at a counter of v. *)
Definition reached s t v := exists g m f, In (t, g, m, f) (reports s) /\ v <= f.

(*
 * What is always true, and carries the proof.
 * seen:     the counter has not fallen since the node had the key for t at v; and whoever has the
 *           key since is K beyond, or has reported more, so that its next turn will be K beyond.
 * answers:  they are of turns up to the present one, and of it none is below what it asks for.
 * apart:    answers of one node for two tokens are at least K apart.
 * reported: the lease knows its own report, and earlier ones are K below what it asks for.
 * growing:  reports of one token are K apart, in the order of its turns.
 *)
Record inv (s : state) : Prop := Inv {
  seen : forall t n v, In (t, n, v) (had s) -> K <= v <= counter s n /\
    forall u, key s n = Some u -> u <> t -> v + K <= counter s n \/ reached s u v;
  answers : forall t g n x, In (t, g, n, x) (said s) ->
    In (t, n, x) (had s) /\ g <= turn (leases s t) /\
    (g = turn (leases s t) -> least (leases s t) <= x);
  apart : forall t g u h n x y, In (t, g, n, x) (said s) -> In (u, h, n, y) (said s) ->
    t <> u -> x + K <= y \/ y + K <= x;
  owned : forall t n, key s n = Some t -> K <= counter s n;
  reported : forall t g m x, In (t, g, m, x) (reports s) ->
    (exists q, is_quorum_of (lists m) q = true /\ forall n, In n q -> In (t, g, n, x) (said s)) /\
    (x + K <= least (leases s t) /\ g < turn (leases s t) \/
     g = turn (leases s t) /\ held (leases s t) = Some (m, x) /\ least (leases s t) <= x);
  growing : forall t g h m k x y, In (t, g, m, x) (reports s) -> In (t, h, k, y) (reports s) ->
    g < h -> x + K <= y;
  one : forall t g m x k y, In (t, g, m, x) (reports s) -> In (t, g, k, y) (reports s) ->
    x = y /\ m = k;
  holding : forall t m x, held (leases s t) = Some (m, x) ->
    In (t, turn (leases s t), m, x) (reports s);
  first_turn : forall t, turn (leases s t) = 0 -> least (leases s t) = 0;
  ranges : forall t g i y, In (t, g, i, y) (holders s) ->
    exists m x, In (t, g, m, x) (reports s) /\ i < K /\ y = first x + i }.

(* New answers are K beyond all that other tokens had at the node; they are of the present turn. *)
Definition after s s' := forall t g n x, In (t, g, n, x) (said s') ->
  In (t, g, n, x) (said s) \/
  g = turn (leases s t) /\ counter s n <= x /\
  forall u v, In (u, n, v) (had s) -> u <> t -> v + K <= x.

Ltac split_step H :=
  repeat match type of H with
  | (if ?b then _ else _) = Some _ => let E := fresh "E" in destruct b eqn:E; [|discriminate]
  | match ?o with Some _ => _ | None => _ end = Some _ =>
      let E := fresh "H" in destruct o as [[? ?]|] eqn:E; [|discriminate]
  end;
  try discriminate H; injection H as <-;
  repeat match goal with
  | E : _ && _ = true |- _ => apply andb_true_iff in E as [? ?]
  | E : _ || false = true |- _ => rewrite orb_false_r in E
  | E : (_ <=? _) = true |- _ => apply Nat.leb_le in E
  | E : (_ <? _) = true |- _ => apply Nat.ltb_lt in E
  | E : (_ =? _) = true |- _ => apply Nat.eqb_eq in E
  end.

Lemma free_or o t u : is_free_or o t = true -> o = Some u -> u = t.
Proof. intros H ->; now apply Nat.eqb_eq in H. Qed.
Lemma is_of_some o t : is_of o t = true -> o = Some t.
Proof. destruct o; cbn; [intros H; apply Nat.eqb_eq in H; now subst | discriminate]. Qed.

Lemma reached_low s t v : inv s -> is_acquiring (leases s t) = true -> reached s t v ->
  v + K <= least (leases s t).
Proof.
  intros I A (g & m & f & J & L); destruct (reported s I t g m f J) as [_ [[] | (_ & E & _)]];
    [lia|].
  unfold is_acquiring in A; rewrite E in A; discriminate.
Qed.

Lemma step_after s a s' : inv s -> step s a = Some s' -> after s s'.
Proof.
  intros I H t g n x J; destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *;
    auto.
  - (* Take *)
    destruct ((turn (ls t0) =? 0) && is_acquiring (ls t0)) eqn:E; [|auto].
    apply andb_true_iff in E as [E _]; apply Nat.eqb_eq in E.
    destruct J as [J | J]; [inversion J; subst | auto]; right; repeat split; [auto | lia |].
    intros u v G _; destruct (seen _ I u n v G) as [? _]; cbn in *; lia.
  - (* Raise *)
    destruct (is_acquiring (ls t0) && ((g0 =? turn (ls t0)) || false)) eqn:E; [|auto].
    apply andb_true_iff in E as [A E]; rewrite orb_false_r in *.
    destruct J as [J | J]; [inversion J; subst | auto]; right; repeat split; [lia |].
    intros u v G D; destruct (seen _ I u n v G) as [? S]; cbn in *.
    destruct (S t) as [? | B]; [now apply is_of_some | congruence | lia |].
    apply (reached_low _ t v I A) in B; cbn in B. rewrite E in *; cbn in *;
      match goal with L : (_ <=? _) = true |- _ => apply Nat.leb_le in L end; lia.
Qed.

Lemma step_keeps s a s' : step s a = Some s' ->
  (forall n, counter s n <= counter s' n) /\ (forall t, turn (leases s t) <= turn (leases s' t)) /\
  (forall e, In e (said s) -> In e (said s')) /\ (forall e, In e (had s) -> In e (had s')) /\
  (forall e, In e (reports s) -> In e (reports s')).
Proof.
  intros H; destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *.
  all: repeat split; intros; cbn; auto;
    try (match goal with |- context [if ?b then _ else _] => destruct b; cbn; auto end; fail);
    unfold upd; try (match goal with |- context [Nat.eqb ?a ?b] => destruct (Nat.eqb_spec a b) end);
    subst; cbn; lia.
Qed.
Lemma reached_keeps s a s' t v : step s a = Some s' -> reached s t v -> reached s' t v.
Proof. intros H (g & m & f & J & L); exists g, m, f; split;
  [now apply (step_keeps s a s' H) | auto]. Qed.
Lemma report_K s t g m x : inv s -> In (t, g, m, x) (reports s) -> K <= x.
Proof.
  intros I J; destruct (reported s I t g m x J) as [(q & Q & A) _].
  destruct (quorum_has_node _ _ Q) as (n & N).
  destruct (answers s I t g n x (A n N)) as [G _]; destruct (seen s I t n x G); lia.
Qed.

(* What a node had before: nothing has changed at the others. *)
Ltac others S J := destruct (S J) as [? S2]; match goal with n : node, m : node |- _ =>
  destruct (Nat.eq_dec n m) as [-> | D]; rewrite ?upd_same, ?upd_other by auto;
    [|split; [lia|]; intros u Y G; destruct (S2 u Y G); now auto] end.

Lemma step_seen s a s' : inv s -> step s a = Some s' -> forall t n v, In (t, n, v) (had s') ->
  K <= v <= counter s' n /\
  forall u, key s' n = Some u -> u <> t -> v + K <= counter s' n \/ reached s' u v.
Proof.
  intros I H t n v J. pose proof (fun t v => reached_keeps s a s' t v H) as P.
  pose proof (seen s I t n v) as S.
  destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *.
  4-7: destruct (S J) as [? S2]; split; [auto|]; intros u; cbn in *; try (unfold upd;
    destruct (n =? n0); [discriminate|]); intros Y D; destruct (S2 u Y D); auto.
  - destruct J as [J | J].
    + inversion J; subst; rewrite !upd_same; split; [lia | congruence].
    + others S J; split; [lia|]; intros; left; lia.
  - match goal with L : was_reported _ _ _ = true |- _ => apply was_reported_in in L as (g & m &
    B) end. pose proof (report_K _ _ _ _ _ I B). destruct J as [J | J].
    + inversion J; subst; rewrite !upd_same; split; [lia | congruence].
    + others S J; split; [lia|]; intros u Y G; inversion Y; subst; right.
      exists g, m, f; split; [exact B | lia].
  - match goal with L : is_of _ _ = true |- _ => apply is_of_some in L end. destruct J as [J | J].
    + inversion J; subst; rewrite !upd_same; pose proof (owned _ I t n ltac:(eassumption));
      cbn in *. split; [lia | congruence].
    + others S J; split; [lia|]; intros u Y G; destruct (S2 u Y G); auto; left; lia.
Qed.

Lemma step_answers s a s' : inv s -> step s a = Some s' ->
  forall t g n x, In (t, g, n, x) (said s') ->
  In (t, n, x) (had s') /\ g <= turn (leases s' t) /\
  (g = turn (leases s' t) -> least (leases s' t) <= x).
Proof.
  intros I H t g n x J; pose proof (answers s I t g n x) as S.
  destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *; auto.
  - destruct ((turn (ls t0) =? 0) && is_acquiring (ls t0)) eqn:Q;
    [|destruct (S J) as (? & ? & ?); auto].
    apply andb_true_iff in Q as [Q _]; apply Nat.eqb_eq in Q.
    destruct J as [J | J]; [|destruct (S J) as (? & ? & ?); auto].
    inversion J; subst; pose proof (first_turn _ I t Q); cbn in *; repeat split; auto; lia.
  - destruct (S J) as (? & ? & ?); auto.
  - destruct (is_acquiring (ls t0) && ((g0 =? turn (ls t0)) || false)) eqn:Q;
      [|destruct (S J) as (? & ? & ?); auto].
    apply andb_true_iff in Q as [_ Q]; rewrite orb_false_r in Q.
    destruct J as [J | J]; [|destruct (S J) as (? & ? & ?); auto].
    inversion J; subst; rewrite Q in *; cbn in *.
    match goal with L : (least _ <=? _) = true |- _ => apply Nat.leb_le in L end.
    repeat split; auto; lia.
  - destruct (S J) as (? & ? & ?); unfold upd; destruct (Nat.eqb_spec t t0); subst; auto.
  - destruct (S J) as (? & ? & ?); unfold upd; destruct (Nat.eqb_spec t t0); subst; auto.
  - destruct (S J) as (? & ? & ?); unfold upd; destruct (Nat.eqb_spec t t0); subst; cbn; auto.
    repeat split; auto; lia.
Qed.

Lemma step_apart s a s' : inv s -> step s a = Some s' -> forall t g u h n x y,
  In (t, g, n, x) (said s') -> In (u, h, n, y) (said s') -> t <> u -> x + K <= y \/ y + K <= x.
Proof.
  intros I H t g u h n x y J G D. pose proof (step_after s a s' I H) as F.
  (* An action adds one answer at most: if both are new, they are of one token. *)
  assert (O : In (t, g, n, x) (said s) \/ In (u, h, n, y) (said s)).
  { destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *; auto.
    all: match type of J with In _ (if ?b then _ else _) => destruct b; auto end.
    all: destruct J as [J | J], G as [G | G]; auto; inversion J; inversion G; subst; congruence. }
  destruct (F t g n x J) as [J0 | (_ & _ & N)], (F u h n y G) as [G0 | (_ & _ & N')].
  - exact (apart s I t g u h n x y J0 G0 D).
  - left; apply (N' t x); [apply (answers s I t g n x J0) | auto].
  - right; apply (N u y); [apply (answers s I u h n y G0) | auto].
  - destruct O as [J0 | G0].
    + left; apply (N' t x); [apply (answers s I t g n x J0) | auto].
    + right; apply (N u y); [apply (answers s I u h n y G0) | auto].
Qed.
Lemma step_owned s a s' : inv s -> step s a = Some s' ->
  forall t n, key s' n = Some t -> K <= counter s' n.
Proof.
  intros I H t n; pose proof (owned s I) as S.
  destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *; eauto;
    destruct (Nat.eq_dec n n0) as [-> | D].
  all: rewrite ?upd_same, ?upd_other by auto; eauto; intros Y; try discriminate; try lia.
  - match goal with L : was_reported _ _ _ = true |- _ => apply was_reported_in in L as (g & m &
    B) end. pose proof (report_K _ _ _ _ _ I B); lia.
  - specialize (S t n0 Y); lia.
Qed.

Lemma step_reported s a s' : inv s -> step s a = Some s' -> forall t g m x,
  In (t, g, m, x) (reports s') ->
  (exists q, is_quorum_of (lists m) q = true /\ forall n, In n q -> In (t, g, n, x) (said s')) /\
  (x + K <= least (leases s' t) /\ g < turn (leases s' t) \/
   g = turn (leases s' t) /\ held (leases s' t) = Some (m, x) /\ least (leases s' t) <= x).
Proof.
  intros I H t g m x J. assert (Q : forall q, (forall n, In n q -> In (t, g, n, x) (said s)) ->
                         forall n, In n q -> In (t, g, n, x) (said s')).
  { intros q A n N; apply (step_keeps s a s' H), A, N. }
  assert (O : In (t, g, m, x) (reports s) -> exists q, is_quorum_of (lists m) q = true /\
                forall n, In n q -> In (t, g, n, x) (said s')).
  { intros J0; destruct (reported s I t g m x J0) as [(q & E & A) _]; exists q; eauto. }
  pose proof (reported s I t g m x) as S.
  destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *;
    try (split; [exact (O J) | exact (proj2 (S J))]).
  - (* Report *)
    match goal with L : forallb _ q = true |- _ => rewrite forallb_forall in L; rename L into A end.
    assert (A' : forall n, In n q -> In (t0, turn (ls t0), n, x0) sd).
    { intros n N; specialize (A n N);
        apply (was_said_in (State k c ls sd hd rs hs)) in A; exact A. }
    destruct J as [J | J].
    + inversion J; subst; rewrite upd_same; cbn; split; [eauto | right; repeat split].
      destruct (quorum_has_node _ _ ltac:(eassumption)) as (n & N).
      destruct (answers _ I t _ n x (A' n N)) as (_ & _ & L); cbn in L; auto.
    + split; [exact (O J)|]; destruct (S J) as [_ S2]; unfold upd.
      destruct (Nat.eqb_spec t t0); subst; cbn; [|exact S2].
      destruct S2 as [S2 | (_ & B & _)]; [left; exact S2 |].
      match goal with L : is_acquiring _ = true |- _ =>
        unfold is_acquiring in L; rewrite B in L; discriminate end.
  - split; [exact (O J)|]; destruct (S J) as [_ S2]; unfold upd.
    destruct (Nat.eqb_spec t t0); subst; cbn; [|exact S2].
    destruct S2 as [S2 | (-> & B & L)]; [left; exact S2 | right; repeat split; congruence].
  - split; [exact (O J)|]; destruct (S J) as [_ S2]; unfold upd.
    destruct (Nat.eqb_spec t t0); subst; cbn; [|exact S2]. left; destruct S2 as [S2 | (-> & B & L)].
    + pose proof (holding _ I t0 _ _ ltac:(eassumption)) as B; cbn in B.
      destruct (reported _ I _ _ _ _ B) as [_ [[] | (_ & _ & L)]]; cbn in *; lia.
    + match goal with B1 : held (ls t0) = Some _, B2 : held (ls t0) = Some _ |- _ =>
        rewrite B1 in B2; inversion B2; subst end; lia.
Qed.

Lemma step_growing s a s' : inv s -> step s a = Some s' -> forall t g h m k x y,
  In (t, g, m, x) (reports s') -> In (t, h, k, y) (reports s') -> g < h -> x + K <= y.
Proof.
  intros I H t g h m k x y J G L.
  destruct (step_reported s a s' I H t h k y G) as [_ [[] | (-> & _ & M)]].
  2: { destruct (step_reported s a s' I H t g m x J) as [_ [[] | (-> & _)]]; lia. }
  (* Neither is of the present turn, so both were reported before. *)
  pose proof (step_reported s a s' I H t h k y G) as Y. pose proof (growing s I t g h m k x y) as S.
  destruct s as [k0 c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *; eauto.
  destruct J as [J | J], G as [G | G]; eauto.
  all: inversion G || inversion J; subst; rewrite ?upd_same in *; cbn in *; try lia.
Qed.
Lemma step_one s a s' : inv s -> step s a = Some s' -> forall t g m x k y,
  In (t, g, m, x) (reports s') -> In (t, g, k, y) (reports s') -> x = y /\ m = k.
Proof.
  intros I H t g m x k y J G. pose proof (one s I t g m x k y) as S.
  pose proof (reported s I t g m x) as X; pose proof (reported s I t g k y) as Y.
  destruct s as [k0 c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *; eauto.
  assert (Z : held (ls t0) = None) by (unfold is_acquiring in *; destruct (held (ls t0));
    congruence).
  destruct J as [J | J], G as [G | G]; [| | | auto].
  - split; congruence.
  - inversion J; subst; destruct (Y G) as [_ [[] | (_ & ? & _)]]; [lia | congruence].
  - inversion G; subst; destruct (X J) as [_ [[] | (_ & ? & _)]]; [lia | congruence].
Qed.

Lemma step_rest s a s' : inv s -> step s a = Some s' ->
  (forall t m x, held (leases s' t) = Some (m, x) ->
    In (t, turn (leases s' t), m, x) (reports s')) /\
  (forall t, turn (leases s' t) = 0 -> least (leases s' t) = 0) /\
  (forall t g i y, In (t, g, i, y) (holders s') ->
     exists m x, In (t, g, m, x) (reports s') /\ i < K /\ y = first x + i).
Proof.
  intros I H; pose proof (holding s I) as A; pose proof (first_turn s I) as B;
    pose proof (ranges s I) as C.
  destruct s as [k c ls sd hd rs hs], a; cbn in H; split_step H; cbn in *; auto; repeat split; auto;
    try (intros u; unfold upd; destruct (Nat.eqb_spec u t); subst; cbn; auto; try discriminate;
      intros ? ? Y; inversion Y; subst; now auto).
  - intros u g i y [J | J]; [inversion J; subst; exists m, x; repeat split; auto; lia |].
    destruct (C u g i y J) as (m' & x' & ? & ? & ?); exists m', x'; auto.
  - intros u g i y [J | J]; [|auto]. inversion J; subst; eexists _, _; repeat split; eauto.
Qed.
Lemma step_inv s a s' : inv s -> step s a = Some s' -> inv s'.
Proof.
  intros I H; destruct (step_rest s a s' I H) as (A & B & C); split;
    eauto using step_seen, step_answers, step_apart, step_owned, step_growing, step_one.
  intros t g m x J; exact (step_reported s a s' I H t g m x J).
Qed.
Lemma start_inv s : is_start s -> inv s.
Proof.
  destruct s as [k c ls sd hd rs hs]; unfold is_start; cbn; intros (-> & -> & -> & -> & -> & ->).
  split; cbn; try contradiction; try discriminate; auto.
Qed.
Lemma run_inv xs s s' : inv s -> run s xs = Some s' -> inv s'.
Proof. apply run_kept; eauto using step_inv. Qed.
Lemma run_keeps xs : forall s s', run s xs = Some s' ->
  (forall t, turn (leases s t) <= turn (leases s' t)) /\
  (forall e, In e (said s) -> In e (said s')) /\ (forall e, In e (had s) -> In e (had s')) /\
  (forall e, In e (reports s) -> In e (reports s')).
Proof.
  induction xs as [|a xs IH]; cbn; intros s s' H; [injection H as <-; auto|].
  destruct (step s a) as [r|] eqn:E; [|discriminate].
  destruct (step_keeps _ _ _ E) as (_ & T & S & D & P), (IH _ _ H) as (T' & S' & D' & P').
  repeat split; auto; intros t; etransitivity; eauto.
Qed.

Lemma run_after xs : forall s s', inv s -> run s xs = Some s' ->
  forall t g n x, In (t, g, n, x) (said s') -> In (t, g, n, x) (said s) \/
  turn (leases s t) <= g /\ forall u v, In (u, n, v) (had s) -> u <> t -> v + K <= x.
Proof.
  induction xs as [|a xs IH]; cbn; intros s s' I H t g n x J; [injection H as <-; auto|].
  destruct (step s a) as [r|] eqn:E; [|discriminate].
  destruct (step_keeps _ _ _ E) as (_ & T & _ & D & _).
  destruct (IH r s' (step_inv _ _ _ I E) H t g n x J) as [G | [L G]].
  - destruct (step_after s a r I E t g n x G) as [F | (-> & _ & F)]; [auto | right; split; auto].
  - right; split; [specialize (T t); lia | intros u v F N; exact (G u v (D _ F) N)].
Qed.

(* ---- the theorems ---- *)

(* An acquisition that no node has granted. *)
Definition not_begun s t g := forall n x, ~ In (t, g, n, x) (said s).

(* Two acquisitions count by a list in common, each perhaps by another one besides. *)
Definition share m k := exists l, In l (lists m) /\ In l (lists k).

(*
 * The ranges of two acquisitions do not overlap. As in all that follows, two of one token need no
 * list in common.
 *)
Theorem ranges_are_disjoint s0 xs s t g m x u h k y :
  is_start s0 -> run s0 xs = Some s ->
  In (t, g, m, x) (reports s) -> In (u, h, k, y) (reports s) -> (t, g) <> (u, h) ->
  (t <> u -> share m k) ->
  x + K <= y \/ y + K <= x.
Proof.
  intros B H X Y D W; assert (I : inv s) by eauto using run_inv, start_inv.
  destruct (Nat.eq_dec t u) as [<- | N].
  - assert (g < h \/ h < g) as [G | G] by (destruct (Nat.lt_total g h) as [|[->|]];
    [auto | now destruct D | auto]);
      [left | right]; eapply (growing s I); eauto.
  - destruct (reported s I _ _ _ _ X) as [(q & Q & A) _],
    (reported s I _ _ _ _ Y) as [(r & P & C) _]. destruct (W N) as (l & L & L').
    destruct (quorums_meet _ _ l q r Q P L L') as (n & ? & ?). eapply (apart s I); eauto.
Qed.

(* An acquisition that begins after the report of another one: its range is above. *)
Theorem fences_grow s0 xs s ys s' t g m x u h k y :
  is_start s0 -> run s0 xs = Some s -> In (t, g, m, x) (reports s) -> not_begun s u h ->
  run s ys = Some s' -> In (u, h, k, y) (reports s') ->
  (t <> u -> share m k) ->
  x + K <= y.
Proof.
  intros B H X N H' Y W; assert (I : inv s) by eauto using run_inv, start_inv.
  assert (I' : inv s') by eauto using run_inv. destruct (reported s I _ _ _ _ X) as [(q & Q & A) T],
    (reported s' I' _ _ _ _ Y) as [(r & P & C) _].
  destruct (Nat.eq_dec t u) as [<- | D].
  - apply (growing s' I' t g h m k x y); [apply (run_keeps _ _ _ H'), X | exact Y |].
    destruct (quorum_has_node _ _ P) as (n & M).
    destruct (run_after ys s s' I H' t h n y (C n M)) as [F | [F _]]; [destruct (N n y F)|].
    assert (g <> h) by (intros ->; destruct (quorum_has_node _ _ Q) as (o & O);
      exact (N o x (A o O))).
    destruct T as [[_ T] | (-> & _)]; lia.
  - destruct (W D) as (l & L & L'). destruct (quorums_meet _ _ l q r Q P L L') as (n & M & M').
    destruct (run_after ys s s' I H' u h n y (C n M')) as [F | [_ F]]; [destruct (N n y F)|].
    apply (F t x); [apply (answers s I t g n x), A, M | exact D].
Qed.

(* The lists by which an acquisition counted. *)
Definition counted_by s t g m := exists x, In (t, g, m, x) (reports s).

(*
 * No two holders have the same fence. A holder is a token, a turn of it, and a position in the
 * range: two requests of one client to which the same lock is handed are two holders.
 *)
Theorem fences_differ s0 xs s t g i m x u h j k y :
  is_start s0 -> run s0 xs = Some s ->
  In (t, g, i, x) (holders s) -> In (u, h, j, y) (holders s) -> (t, g, i) <> (u, h, j) ->
  counted_by s t g m -> counted_by s u h k -> (t <> u -> share m k) ->
  x <> y.
Proof.
  intros B H X Y D [x0 M] [y0 N] W; assert (I : inv s) by eauto using run_inv, start_inv.
  destruct (ranges s I _ _ _ _ X) as (m1 & x1 & X1 & Xi & ->),
    (ranges s I _ _ _ _ Y) as (k1 & y1 & Y1 & Yj & ->).
  destruct (one _ I _ _ _ _ _ _ M X1) as [<- <-],
    (one _ I _ _ _ _ _ _ N Y1) as [<- <-].
  pose proof (report_K s _ _ _ _ I M); pose proof (report_K s _ _ _ _ I N); unfold Fences.first.
  destruct (Nat.eq_dec t u) as [<- | T]; [destruct (Nat.eq_dec g h) as [<- | G]|].
  - destruct (one _ I _ _ _ _ _ _ M N) as [<- _]; intros E; apply D; f_equal; lia.
  - destruct (ranges_are_disjoint _ _ _ _ _ _ _ _ _ _ _ B H M N ltac:(congruence) W); lia.
  - destruct (ranges_are_disjoint _ _ _ _ _ _ _ _ _ _ _ B H M N ltac:(congruence) W); lia.
Qed.

(*
 * The order of holders. If a holder h1 of an acquisition was reported before another acquisition
 * begins, h1's fence is smaller than that of each holder of the other one. Within one acquisition
 * fences grow from holder to holder. This is the whole promise: a lock that is handed on without a
 * message, after another client's lock was reported, may still have a smaller fence than that one
 * (handed_on_late_is_smaller, below): its acquisition began before.
 *)
Theorem fences_of_holders s0 xs s ys s' t g i m x u h j k y :
  is_start s0 -> run s0 xs = Some s -> In (t, g, i, x) (holders s) ->
  run s ys = Some s' -> In (u, h, j, y) (holders s') ->
  counted_by s t g m -> counted_by s' u h k -> (t <> u -> share m k) ->
  not_begun s u h \/ (t, g) = (u, h) /\ i < j ->
  x < y.
Proof.
  intros B H X H' Y [x0 M] [y0 N] W O; assert (I : inv s) by eauto using run_inv, start_inv.
  assert (I' : inv s') by eauto using run_inv.
  destruct (ranges s I _ _ _ _ X) as (m1 & x1 & X1 & Xi & ->),
    (ranges s' I' _ _ _ _ Y) as (k1 & y1 & Y1 & Yj & ->).
  destruct (one _ I _ _ _ _ _ _ M X1) as [<- <-],
    (one _ I' _ _ _ _ _ _ N Y1) as [<- <-].
  pose proof (report_K s _ _ _ _ I M); pose proof (report_K s' _ _ _ _ I' N); unfold Fences.first.
  destruct O as [O | [E O]].
  - pose proof (fences_grow _ _ _ _ _ _ _ _ _ _ _ _ _ B H M O H' N W); lia.
  - inversion E; subst; apply (run_keeps _ _ _ H') in M.
    destruct (one _ I' _ _ _ _ _ _ M N) as [<- _]; lia.
Qed.

(* From the old list over both to the new one, each reported before the next one begins. *)
Theorem lists_in_order s0 xs s ys s' zs s'' t g m x u h k y v f n z :
  is_start s0 -> run s0 xs = Some s -> In (t, g, m, x) (reports s) ->
  not_begun s u h -> run s ys = Some s' -> In (u, h, k, y) (reports s') ->
  not_begun s' v f -> run s' zs = Some s'' -> In (v, f, n, z) (reports s'') ->
  share m k -> share k n ->
  x + K <= y /\ y + K <= z.
Proof.
  intros B H X N H' Y N' H'' Z; intros; split;
    [apply (fences_grow s0 xs s ys s' t g m x u h k y); auto|].
  assert (R : run s0 (xs ++ ys) = Some s').
  { clear - H H'; revert s0 H; induction xs as [|a xs IH]; cbn; intros s0 H; [congruence|].
    destruct (step s0 a); [auto | discriminate]. }
  apply (fences_grow s0 (xs ++ ys) s' zs s'' u h k y v f n z); auto.
Qed.

(*
 * The lock of token t has fence x (by any lists), and was renewed at a quorum of l, whose counters
 * it found or raised to x or more. An acquisition by l that begins later, of another token, has
 * larger fences: so a lock that is held while lists are changed keeps its place in the order.
 *)
Theorem carried_over s0 xs s ys s' t x l q u h k y :
  is_start s0 -> run s0 xs = Some s ->
  is_quorum l q = true -> (forall n, In n q -> exists v, x <= v /\ In (t, n, v) (had s)) ->
  not_begun s u h -> t <> u ->
  run s ys = Some s' -> In (u, h, k, y) (reports s') -> In l (lists k) ->
  x + K <= y.
Proof.
  intros B H Q A N D H' Y L; assert (I : inv s) by eauto using run_inv, start_inv.
  assert (I' : inv s') by eauto using run_inv.
  destruct (reported s' I' _ _ _ _ Y) as [(r & P & C) _].
  destruct (majorities_meet l q r Q (quorum_of_list _ _ _ P L)) as (n & M & M').
  destruct (A n M) as (v & V & G).
  destruct (run_after ys s s' I H' u h n y (C n M')) as [F | [_ F]]; [destruct (N n y F)|].
  specialize (F t v G D); lia.
Qed.

(*
 * What redlock_check_fence relies on: an acquisition with a range up to y was reported. If enough
 * nodes of one of its lists answer, at any time after that, that no quorum can be without all of
 * them, one of them has a counter of y or more. So if none has, there was no such acquisition.
 *)
Theorem counters_cover s0 xs s ys s' u h k y l q :
  is_start s0 -> run s0 xs = Some s -> In (u, h, k, y) (reports s) -> In l (lists k) ->
  run s ys = Some s' -> length l < count q l + (length l / 2 + 1) ->
  exists n, In n q /\ y <= counter s' n.
Proof.
  intros B H Y L H' Q; assert (I' : inv s') by eauto using run_inv, start_inv.
  apply (run_keeps _ _ _ H') in Y. destruct (reported s' I' _ _ _ _ Y) as [(r & P & C) _].
  apply (quorum_of_list _ l) in P; [apply Nat.leb_le in P | exact L].
  destruct (overlap q r l ltac:(lia)) as (n & M & M'); exists n; split; [exact M|].
  destruct (answers s' I' u h n y (C n M')) as [G _]; destruct (seen s' I' u n y G); lia.
Qed.
End Proof.

(* ---- each rule is needed ---- *)

(*
 * Runs of a small world: ranges of 4, no counter yet; the old list 0, 1, 2, the new one 2, 3, 4.
 * Lists 0 is the old one, lists 1 both, lists 2 the new one. X, Y are the tokens of two clients.
 *)
Definition lists3 m := nth m [[[0; 1; 2]]; [[0; 1; 2]; [2; 3; 4]]; [[2; 3; 4]]] [].
Definition s0 :=
  State (fun _ => None) (fun _ => 0) (fun _ => Lease 0 0 None 0) [] [] [] [].
Notation run4 R := (run R lists3 4 s0).
Definition X : token := 1.
Definition Y : token := 2.

Lemma s0_is_start : is_start s0.
Proof. now repeat split. Qed.

(* Two holders have one fence, though all count by the old list. *)
Definition equal_fences R := exists xs s t g i u h j x,
  run4 R xs = Some s /\ In (t, g, i, x) (holders s) /\ In (u, h, j, x) (holders s) /\
  (t, g, i) <> (u, h, j) /\ forall v f m y, In (v, f, m, y) (reports s) -> m = 0.

(* The newest holder that was reported has the fence of an earlier one. *)
Definition repeats s := match holders s with
  | (t, g, i, x) :: older => existsb (fun e => let '(u, h, j, y) := e in Nat.eqb y x &&
      negb (Nat.eqb t u && Nat.eqb g h && Nat.eqb i j)) older
  | [] => false end && forallb (fun r => Nat.eqb (snd (fst r)) 0) (reports s).

(* All rules but one, by its place in [rules]. *)
Definition off i := let on k := negb (Nat.eqb i k) in
  Rules (on 0) (on 1) (on 2) (on 3) (on 4) (on 5) (on 6) (on 7) (on 8).

Lemma equal R xs : match run4 R xs with Some s => repeats s | None => false end = true ->
  equal_fences R.
Proof.
  destruct (run4 R xs) as [s|] eqn:E; [|discriminate]; unfold repeats.
  destruct (holders s) as [|[[[t g] i] x] older] eqn:F; [discriminate|].
  rewrite andb_true_iff, existsb_exists, forallb_forall; intros [([[[u h] j] y] & I & C) A].
  apply andb_true_iff in C as [C D]; apply Nat.eqb_eq in C; subst y.
  exists xs, s, t, g, i, u, h, j, x; rewrite F; cbn; repeat split; auto.
  - intros G; inversion G; subst; rewrite !Nat.eqb_refl in D; discriminate.
  - intros v f m y J; apply A in J; now apply Nat.eqb_eq in J.
Qed.

Ltac by_run xs := apply (equal _ xs); vm_compute; reflexivity.

(* X has acquired the key at nodes 0 and 1, with fences 1 to 4. *)
Definition X_holds := [Take X 0 4; Take X 1 4; Report X 0 [0; 1] 4].
(* The key of node 1 is gone, and Y has acquired it at nodes 1 and 2, with fences 5 to 8. *)
Definition Y_follows := [Gone 1; Take Y 1 8; Take Y 2 8; Report Y 0 [1; 2] 8].

(* A grant that counts by one: Y's range begins inside of X's. *)
Theorem without_steps_by_range : equal_fences (off 0).
Proof. by_run (X_holds ++ [Hand_on X; Gone 1; Take Y 1 5; Take Y 2 5; Report Y 0 [1; 2] 5]). Qed.

(* A top-up puts X's token beside Y's counter; X's handover then finds it there. *)
Theorem without_steps_past_others : equal_fences (off 1).
Proof. by_run (X_holds ++ Y_follows ++ [Gone 2; Top_up X 2 4; Next_turn X; Raise X 1 8 0;
  Raise X 1 8 2; Report X 0 [0; 2] 8]). Qed.

(* A RAISE where the key is another's counts. *)
Theorem without_comparing : equal_fences (off 2).
Proof. by_run ([Take X 0 4; Take Y 1 8; Take Y 2 8; Report Y 0 [1; 2] 8; Raise X 0 8 0;
  Raise X 0 8 1; Report X 0 [0; 1] 8]). Qed.

(* A RAISE that lowers. *)
Theorem without_keeping_larger : equal_fences (off 3).
Proof. by_run (X_holds ++ [Gone 1; Take Y 1 8; Take Y 2 8; Raise Y 0 4 1; Raise Y 0 4 2;
  Report Y 0 [1; 2] 4]). Qed.

(* The largest counter is reported, without raising the others to it. *)
Theorem without_agreement : equal_fences (off 4).
Proof. by_run ([Take X 0 8; Take X 1 4; Report X 0 [0; 1] 8; Gone 1; Take Y 1 8; Take Y 2 8;
  Report Y 0 [1; 2] 8]). Qed.

(* A handover by a round that asks for no new range. *)
Theorem without_next_range : equal_fences (off 5).
Proof. by_run (X_holds ++ [Next_turn X; Raise X 1 4 0; Raise X 1 4 1; Report X 0 [0; 1] 4]). Qed.

(* Late answers to renewals of the holder before count for the next one. *)
Theorem without_own_turn : equal_fences (off 6).
Proof. by_run (X_holds ++ [Next_turn X; Raise X 0 4 0; Raise X 0 4 1; Report X 0 [0; 1] 4]). Qed.

(* A fifth holder of a range of four. *)
Theorem without_a_bound_on_holders : equal_fences (off 7).
Proof. by_run (X_holds ++ Y_follows ++ [Hand_on X; Hand_on X; Hand_on X; Hand_on X]). Qed.

(* A counter is lost, and begins again. *)
Theorem without_counters_kept : equal_fences (off 8).
Proof. by_run (X_holds ++ [Lose 1 0; Take Y 1 4; Take Y 2 4; Report Y 0 [1; 2] 4]). Qed.

(*
 * It is not enough that each grant counts from a clock that is right, so that each Take is above
 * all that was before: a top-up sets a lost counter to the fence of its lock, and that lock's
 * handover by a round counts on from there.
 *)
Theorem without_counters_kept_but_clocks : equal_fences (off 8).
Proof. by_run (X_holds ++ Y_follows ++ [Lose 1 0; Top_up X 1 4; Next_turn X; Raise X 1 8 0;
  Raise X 1 8 1; Report X 0 [0; 1] 8]). Qed.

(* The old list and the new one, without one acquisition or renewal by both between them. *)
Theorem without_a_list_in_common : exists xs s x y, run4 strict xs = Some s /\
  In (X, 0, 0, 4) (reports s) /\ In (Y, 0, 2, 4) (reports s) /\
  In (X, 0, 0, x) (holders s) /\ In (Y, 0, 0, y) (holders s) /\ x = y.
Proof.
  exists (X_holds ++ [Take Y 3 4; Take Y 4 4; Report Y 2 [3; 4] 4]).
  eexists _, 1, 1; split; [cbv; reflexivity|]; cbn; auto 10.
Qed.

(* ---- what the theorems do not promise ---- *)

Ltac by_states xs x y := exists xs; eexists _, _, x, y; split; [cbv; reflexivity|];
  split; [cbn; auto|]; split; [cbv; reflexivity|]; split; [cbn; auto | lia].

(* After Y was reported, X is handed on without a message: that holder's fence is below Y's. *)
Theorem handed_on_late_is_smaller : exists xs s s' x y, run4 strict xs = Some s /\
  In (Y, 0, 0, y) (holders s) /\ step strict lists3 4 s (Hand_on X) = Some s' /\
  In (X, 0, 1, x) (holders s') /\ x < y.
Proof. by_states (X_holds ++ Y_follows) 2 5. Qed.

(* X had its answers before Y was reported, and is reported after it: its fence is below Y's. *)
Theorem begun_before_may_be_smaller : exists xs s s' x y, run4 strict xs = Some s /\
  In (Y, 0, 0, y) (holders s) /\ step strict lists3 4 s (Report X 0 [0; 1] 4) = Some s' /\
  In (X, 0, 0, x) (holders s') /\ x < y.
Proof. by_states ([Take X 0 4; Take X 1 4] ++ Y_follows) 1 5. Qed.

(* ---- and things do happen ---- *)

(*
 * X is acquired after a RAISE, handed on, topped up at a node that another client used, handed over
 * by a round; lists are changed to both, where X is renewed, and Y is acquired by the new one.
 *)
Theorem can_be_held : exists s, run4 strict
  [Take X 0 4; Take X 1 7; Raise X 0 7 0; Raise X 0 7 1; Report X 0 [0; 1] 7; Hand_on X;
   Take Y 2 4; Gone 2; Take X 2 8; Next_turn X; Raise X 1 11 0; Raise X 1 11 2;
   Report X 1 [0; 2; 3] 11] = None /\
  run4 strict
  [Take X 0 4; Take X 1 7; Raise X 0 7 0; Raise X 0 7 1; Report X 0 [0; 1] 7; Hand_on X;
   Take Y 2 4; Gone 2; Take X 2 8; Next_turn X; Raise X 1 11 0; Raise X 1 11 2;
   Report X 0 [0; 2] 11; Top_up X 3 11; Raise X 1 11 2; Raise X 1 11 3; Gone 3; Gone 2;
   Take Y 3 15; Take Y 4 15; Report Y 2 [3; 4] 15] = Some s /\
  holders s = [(Y, 0, 0, 12); (X, 1, 0, 8); (X, 0, 1, 5); (X, 0, 0, 4)].
Proof. eexists; split; [vm_compute; reflexivity|]; split; [cbv; reflexivity | reflexivity]. Qed.


"""What runs inside a rank: it keeps the rank's record fresh and answers when it is asked."""

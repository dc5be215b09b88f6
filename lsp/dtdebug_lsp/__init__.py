"""What dtdebug shows in editors."""
